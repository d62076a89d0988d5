"""An issuer of tokens: a real server on loopback with its metadata, its keys and what it signs."""

from __future__ import annotations

import asyncio
import json
import socket
from types import TracebackType
from typing import Any, Self

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

RSA = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
EC = ec.generate_private_key(ec.SECP256R1())
STRANGER = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
NOW_S = 1_800_000_000
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
AUDIENCE = "https://remit.example/mcp"


def public(key: Any, key_id: str, **more: Any) -> dict[str, Any]:
    """The public half as a JWK."""
    algorithm: Any = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": key_id, "use": "sig", **more}


class Issuer:
    """Serves while the block lasts."""

    def __init__(self) -> None:
        self.keys: list[Any] = [public(RSA, "rsa"), public(EC, "ec")]
        self.metadata: dict[str, Any] = {}
        """What its metadata says instead."""
        self.asked: list[str] = []
        self.redirects = False
        self.denies = False
        """Whether it refuses to exchange tokens."""
        self.forms: list[dict[str, str]] = []
        """What it was asked to exchange."""
        self.grants: dict[str, Any] = {}
        """What it gives instead."""
        self.body: bytes | None = None
        """The document of its keys, if it is not that of `keys`."""

    async def __aenter__(self) -> Self:
        listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        app = Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._configuration),
                Route("/keys", self._keys),
                Route("/token", self._token, methods=["POST"]),
            ]
        )
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
        self._serving = asyncio.create_task(self._server.serve(sockets=[listening]))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        await self._serving

    def token(self, key: Any = RSA, algorithm: str = "RS256", header: Any = None, **claims: Any) -> str:
        """A token that it signs; a claim or a part of the header that is None is left out."""
        said = {
            "iss": self.url,
            "sub": "u1",
            "aud": AUDIENCE,
            "exp": NOW_S + 600,
            "email": "ann@acme.example",
            **claims,
        }
        kid = "ec" if algorithm.startswith("ES") else "rsa"
        head = {"kid": kid, **(header or {})}
        return jwt.encode(
            {name: value for name, value in said.items() if value is not None},
            key,
            algorithm=algorithm,
            headers={name: value for name, value in head.items() if value is not None},
        )

    async def _configuration(self, request: Request) -> Response:
        self.asked.append(request.url.path)
        places = {"jwks_uri": f"{self.url}/keys", "token_endpoint": f"{self.url}/token"}
        return JSONResponse({"issuer": self.url, **places, **self.metadata})

    async def _token(self, request: Request) -> Response:
        """Exchange a token of its own for an assertion (RFC 8693; ID-JAG)."""
        self.asked.append(request.url.path)
        form = {name: str(value) for name, value in (await request.form()).items()}
        self.forms.append({**form, "authorization": request.headers.get("authorization", "")})
        claims = jwt.decode(
            form["subject_token"], RSA.public_key(), ["RS256"], options={"verify_exp": False, "verify_aud": False}
        )
        if self.denies or form["grant_type"] != EXCHANGE or form["requested_token_type"] != ID_JAG:
            return JSONResponse({"error": "access_denied"}, status_code=400)
        jag = self.token(
            header={"typ": "oauth-id-jag+jwt"}, sub=claims["sub"], aud=form["audience"], resource=form["resource"]
        )
        return JSONResponse({"access_token": jag, "issued_token_type": ID_JAG, "token_type": "N_A", **self.grants})

    async def _keys(self, request: Request) -> Response:
        self.asked.append(request.url.path)
        if self.redirects:
            return RedirectResponse("/elsewhere")
        return Response(self.body) if self.body is not None else JSONResponse({"keys": self.keys})
