"""The services of docker-compose.yml: reachable from this computer only, with no more rights than they need."""

from typing import Any

import pytest
import yaml

from utils.core.paths import ROOT

SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_local_and_has_no_rights_that_it_does_not_need(name: str) -> None:
    service = SERVICES[name]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["volumes"] == ["./output:/app/output"]
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert not {"network_mode", "privileged"} & service.keys()
    assert all(value is None for value in service["environment"].values())  # no secret is written down


def test_only_the_page_starts_by_default() -> None:
    assert [name for name, service in SERVICES.items() if "profiles" not in service] == ["page"]
