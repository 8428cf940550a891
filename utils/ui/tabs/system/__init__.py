"""The parts of the System drawer: settings, licence, base models, disk and versions."""
