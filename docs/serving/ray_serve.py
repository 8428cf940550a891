"""Serve speech with Ray Serve: `python docs/serving/ray_serve.py --model mine --max-replicas 4`.

It takes the settings of `python -m utils serve` and starts more replicas while there are more requests. Each replica is
a process with a model of its own. Needs `pip install "ray[serve]"`.
"""

import argparse
import os
import sys
import threading
from concurrent.futures import Future
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import ray
from ray import serve

from utils.cli.serve import load
from utils.config import ServeConfig
from utils.config.flags import add_flags, read_flags
from utils.core.paths import ROOT
from utils.server.app import create_app, url
from utils.server.auth import AuthMiddleware, api_key
from utils.server.service import SpeechService
from utils.speech.session import SpeechSession


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--min-replicas", type=int, default=1, metavar="N", help="replicas that always run (1)")
    parser.add_argument("--max-replicas", type=int, default=2, metavar="N", help="replicas under load (2)")
    parser.add_argument("--cpus", type=float, default=1, metavar="X", help="CPU cores and threads of a replica (1)")
    parser.add_argument("--gpus", type=float, default=0, metavar="X", help="GPUs of a replica, such as 1 or 0.5 (0)")
    add_flags(parser, ServeConfig)
    arguments = parser.parse_args()
    config = read_flags(arguments, ServeConfig)
    # For a Ray that is started here: no statistics to its makers, and no lower priority than that of other programs.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")
    ray.init(include_dashboard=False)  # joins the cluster of RAY_ADDRESS if that is set
    serve.start(http_options={"host": config.host, "port": config.port})
    serve.run(application(config, arguments), name="speech")
    print(f"Speech is served at {url(config.host, config.port)}/v1/audio/speech.", flush=True)
    threading.Event().wait()


def application(config: ServeConfig, arguments: argparse.Namespace) -> serve.Application:
    """Describe the replicas to Ray."""
    key = api_key(config.api_key_file, config.host)
    deployment = serve.deployment(serve.ingress(lambda: replica(config, key))())
    return deployment.options(
        name="replica",
        # Ray cannot send a request to another replica once one has accepted it. So a replica accepts what it can speak
        # now, and the others wait in the proxy, where the end of a replica does not matter to them.
        max_ongoing_requests=config.active,
        max_queued_requests=config.waiting,
        autoscaling_config={
            "min_replicas": arguments.min_replicas,
            "max_replicas": arguments.max_replicas,
            "target_ongoing_requests": max(1, config.active / 2),
        },
        ray_actor_options={
            "num_cpus": arguments.cpus,
            "num_gpus": arguments.gpus,
            "runtime_env": {"env_vars": {"PYTHONPATH": str(ROOT)}},
        },
    ).bind()


def replica(config: ServeConfig, key: str) -> AuthMiddleware:
    """Load the model in a process of Ray; no request arrives before it is loaded."""
    service = SpeechService(config, SpeechSession(load, config.active, config.waiting))
    loaded: Future[object] = Future()
    service.session.submit(lambda _model: iter(()), service.defaults, deliver=loaded.set_result)
    if isinstance(error := loaded.result(), Exception):
        raise error
    return create_app(service, key)


if __name__ == "__main__":
    main()
