"""docs/audit.md: a recorder signs, and what is exported proves it."""

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from here import project, remit

private = Ed25519PrivateKey.generate()
file = Path("key.pem")
file.touch(0o600)
file.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
project('[recorder]\norigin = "example.com/agents"\n[audit]\nkey = "key.pem"\n')
key = remit("recorder", "key").strip()
remit("run", "triage", "--customer", "ada")
remit("recorder", "sign")
assert "example.com/agents" in remit("recorder", "checkpoints")
remit("verify", "last", "--key", key)
remit("export", "last", "-o", "job.zip")
remit("verify", "job.zip", "--key", key)
remit("export", "last", "--format", "receipts", "-o", "receipts.zip", "--publish", "published")
remit("verify", "receipts.zip", "--issuer-keys", "published/keys.json")
