"""A program: read a bill of materials and a signed provenance with other people's tools, from build/peers-releases.

Usage: release_check.py BILL ENVELOPE KEY, the key's 32 bytes in hexadecimal. Prints what they say, as JSON.
"""

import hashlib
import json
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import statement_pb2
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

bill, envelope, key = Path(sys.argv[1]), Envelope.from_dict(json.loads(Path(sys.argv[2]).read_bytes())), sys.argv[3]
name = hashlib.sha256(bytes.fromhex(key)).hexdigest()
misfit = JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill.read_text(encoding="utf-8"))
signers = envelope.verify([SSlibKey(name, "ed25519", "ed25519", {"public": key})], 1)
statement = json_format.Parse(envelope.payload, statement_pb2.Statement())
provenance = json_format.ParseDict(json_format.MessageToDict(statement.predicate), provenance_pb2.Provenance())
envelope.payload += b" "
try:
    envelope.verify([SSlibKey(name, "ed25519", "ed25519", {"public": key})], 1)
    changed = "taken"
except VerificationError:
    changed = "refused"
said = {
    "bill": "valid" if misfit is None else str(misfit),
    "signers": [*signers],
    "subjects": {subject.name: subject.digest["sha256"] for subject in statement.subject},
    "type": provenance.build_definition.build_type,
    "changed": changed,
}
sys.stdout.write(json.dumps(said))
