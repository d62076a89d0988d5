"""docs/http.md: a bearer of an issuer's token uses the API."""

import os
import urllib.request

from here import address, project, started

ISSUER = f"""
[[clients]]
principal = "{{email}}"
issuer = "{os.environ["ISSUER_URL"]}"
audience = "https://remit.example/mcp"
scopes = ["read", "call"]
"""

project(ISSUER)
with started("serve", "--port", "0") as process:
    request = urllib.request.Request(f"{address(process)}/v1/jobs")
    request.add_header("authorization", f"Bearer {os.environ['TOKEN']}")
    with urllib.request.urlopen(request) as response:
        assert response.status == 200
