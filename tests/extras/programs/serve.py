"""docs/http.md, docs/console.md, docs/client.md: the API, the console, and the same commands from far away."""

import urllib.request

from here import address, project, remit, started, told

project()
with started("serve", "--port", "0") as process:
    url = address(process)
    assert told("--server", url, "run", "triage", "--customer", "ada")["state"] == "completed"
    assert "completed" in remit("--server", url, "jobs")
    for path in ("/", "/jobs", "/openapi.json", "/metrics", "/health"):
        with urllib.request.urlopen(url + path) as response:
            assert response.status == 200, path
