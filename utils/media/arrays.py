"""The types of NumPy arrays, by what they hold."""

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
Int16Array = npt.NDArray[np.int16]
Int64Array = npt.NDArray[np.int64]
Float16Array = npt.NDArray[np.float16]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
