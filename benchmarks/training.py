"""Compare our training with plain coqui-tts: `python benchmarks/training.py [--device cuda --layers 30 --dim 1024]`.

Both sides start from the same weights, read the same clips and make the same number of updates of the same effective
batch, in alternating rounds. Our side reads features that were extracted once; the extraction is timed separately and
also spread over three epochs. ``--switches`` measures each of our switches instead, and ``--profile`` shows where the
time of a step goes. The results are written to benchmarks/results as JSON and Markdown.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import yaml

from benchmarks import record
from benchmarks import training_report as report
from benchmarks import training_switches as switches
from benchmarks.training_data import Material, make
from benchmarks.training_findings import Comparison, Measured, SwitchTable
from benchmarks.training_plan import Plan, Round
from benchmarks.training_sides import Side, apart

ROUNDS = {"cpu": 5, "cuda": 7}
PASSES = 3  # over the feature pass; the median counts
COQUI_WORKERS = 8  # in coqui's recipe, which is for GPUs; on a CPU they would take its cores away
SMALL = {"layers": 2, "dim": 128, "batch": 2, "clips": 16}  # for the switches on a CPU
ON_A_GPU: dict[str, object] = {"enable_mixed_precision": True, "enable_grad_checkpoint": True}  # compared with coqui


def compare(plan: Plan, material: Material, rounds: int, updates: int) -> Comparison:
    """Let both sides work in turn and gather what was found."""
    feature_seconds = encoded(plan, material, PASSES)
    tell(f"features of {plan.clips} clips: {feature_seconds:.1f} s")
    with Side("coqui", plan, material) as coqui, Side("ours", plan, material) as ours:
        sides = {"coqui": coqui, "ours": ours}
        before = {name: side.loss() for name, side in sides.items()}
        tell(f"loss before: {before}")
        found: dict[str, list[Round]] = {name: [] for name in sides}
        for number in range(rounds + 1):
            for name in alternating(list(sides), number):
                found[name].append(sides[name].round(updates))
                tell(f"round {number}: {name:6}{found[name][-1].speed:8.3f} clips/s{' (warm-up)' * (not number)}")
        memory = {name: side.memory() for name, side in sides.items()}
        notes = {"coqui": coqui_notes(coqui, plan, found["coqui"]), "ours": ours.changes}
        after = {name: side.loss() for name, side in sides.items()}
    done = (rounds + 1) * updates
    measured = {
        name: Measured(found[name][1:], memory[name], before[name], after[name], done, notes[name]) for name in sides
    }
    return Comparison(
        plan, **measured, feature_seconds=feature_seconds,
        hardware=record.hardware(plan.device), command=record.typed(), date=record.today(),
    )  # fmt: skip


def alternating(names: list[str], number: int) -> list[str]:
    """Return who begins: each side as often as the other, so that neither always has the warmer machine."""
    return names if number % 2 == 0 else names[::-1]


def coqui_notes(side: Side, plan: Plan, rounds: list[Round]) -> list[str]:
    """Say what a reader should know of plain coqui here."""
    share = side.loading_seconds() / sum(one.seconds for one in rounds)
    return [
        f"sound is read with {side.reads_with()}",
        f"{plan.workers} loading processes; waiting for the loader took {share:.1%} of its time",
    ]


def encoded(plan: Plan, material: Material, passes: int) -> float:
    """Time the feature pass in a process of its own."""
    return float(apart("benchmarks.training_ours:encode", plan, material, passes))


def tell(message: str) -> None:
    """Say how far the work is."""
    print(f"{time.strftime('%H:%M:%S')} {message}", flush=True)


def run_comparison(plan: Plan, material: Material, arguments: argparse.Namespace) -> None:
    """Compare, write the findings down and show them."""
    updates = arguments.updates or plan.epoch
    found = compare(plan, material, arguments.rounds or ROUNDS[plan.device], updates)
    page = report.comparison_page(found)
    name = record.file_name("training", found.hardware, found.date)
    print(page, record.save(name, report.comparison_data(found), page, arguments.results), sep="\n")


def run_switches(plan: Plan, material: Material, arguments: argparse.Namespace) -> None:
    """Measure the switches, write the findings down and show them."""
    encoded(plan, material, 1)
    updates, names = arguments.updates or switches.UPDATES, switches.chosen(arguments.only, plan.device)
    rows = switches.measure(plan, material, names, updates, tell)
    rows += switches.left_out(names) if not arguments.only else []
    found = SwitchTable(
        plan, updates, rows,
        hardware=record.hardware(plan.device), command=record.typed(), date=record.today(),
    )  # fmt: skip
    page = report.switch_page(found)
    name = record.file_name("training_switches", found.hardware, found.date)
    print(page, record.save(name, report.switch_data(found), page, arguments.results), sep="\n")


def run_profile(plan: Plan, material: Material, arguments: argparse.Namespace) -> None:
    """Show where the time of a step goes on both sides."""
    encoded(plan, material, 1)
    for name in ("ours", *(["coqui"] if arguments.both else [])):
        with Side(name, plan, material) as side:
            print(side.profile(arguments.updates or plan.epoch))


def plan_of(arguments: argparse.Namespace) -> Plan:
    """Read the conditions off the command line."""
    small = SMALL if arguments.switches and arguments.device == "cpu" else {}
    given = {name: getattr(arguments, name) for name in (*SMALL, "accumulation", "threads", "rate", "seed")}
    chosen = small | {name: value for name, value in given.items() if value is not None}
    workers = arguments.workers
    if workers is None:
        workers = min(COQUI_WORKERS, os.cpu_count() or 1) if arguments.device == "cuda" else 0
    settings = ON_A_GPU if arguments.device == "cuda" and not arguments.switches else {}
    settings = settings | {name: yaml.safe_load(value) for name, value in (one.split("=", 1) for one in arguments.set)}
    return Plan(device=arguments.device, workers=workers, settings=settings, **chosen)


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--switches", action="store_true", help="measure each switch of ours instead")
    kinds.add_argument("--profile", action="store_true", help="show where the time of our step goes instead")
    parser.add_argument("--both", action="store_true", help="with --profile: plain coqui too")
    parser.add_argument("--only", nargs="+", choices=list(switches.SWITCHES), help="with --switches: only these rows")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--layers", type=int, help="of the GPT (6; with --switches on a CPU 2)")
    parser.add_argument("--dim", type=int, help="width of the GPT (512; with --switches on a CPU 128)")
    parser.add_argument("--batch", type=int, help="clips on the device at once (8; with --switches on a CPU 2)")
    parser.add_argument("--accumulation", type=int, help="batches summed before an update (1)")
    parser.add_argument("--clips", type=int, help="clips in all (64; with --switches on a CPU 16)")
    parser.add_argument("--threads", type=int, help="threads of each side (2)")
    parser.add_argument("--workers", type=int, help="loading processes of coqui (0 on a CPU, 8 with a GPU)")
    parser.add_argument("--rate", type=float, help="learning rate (1e-4; it costs no time)")
    parser.add_argument("--seed", type=int, help="of clips, weights and order (0)")
    parser.add_argument("--rounds", type=int, help="rounds of each side behind the first (5; on a GPU 7)")
    parser.add_argument("--updates", type=int, help="updates of a round, or of a row (an epoch; 100)")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="FIELD=VALUE", help="further settings of our side, as in a config"
    )
    parser.add_argument("--results", type=Path, default=record.RESULTS, help="where the findings are written")
    return parser


def main() -> None:
    """Make the material, measure and report."""
    arguments = parser().parse_args()
    plan = plan_of(arguments)
    run = run_switches if arguments.switches else run_profile if arguments.profile else run_comparison
    with tempfile.TemporaryDirectory(prefix="training-benchmark-") as folder:
        material = make(Path(folder), plan)
        tell(f"made {plan.clips} clips and a model of {plan.layers} x {plan.dim}")
        run(plan, material, arguments)


if __name__ == "__main__":
    main()
