"""The class's own certificates. Who reaches a scheduler or a worker of Dask's has it run any code, as the user who
started it: so they speak TLS alone, and with nobody who does not show the class's certificate.

One certificate, signed by itself, is the authority and everybody's proof; its key is what makes a machine one of the
class's. Both are files that this user alone can read.
"""

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

from flashladder.core.errors import FlashLadderError

CERTIFICATE, KEY = "class.pem", "class.key"
DAYS = 400  # a course's year


def make(folder: Path) -> Path:
    """Writes both files into a folder that does not have them yet."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as error:
        raise FlashLadderError("Certificates need the extra: `pip install 'flashladder[classroom]'`.") from error
    for name in (CERTIFICATE, KEY):
        if os.path.lexists(folder / name):
            raise FlashLadderError(f"{folder / name} exists: the class has its certificates; remove both for new ones.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "FlashLadder class")])
    now = datetime.now(timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    format_of_keys = serialization.PrivateFormat.PKCS8
    _write(folder / KEY, key.private_bytes(serialization.Encoding.PEM, format_of_keys, plain))
    _write(folder / CERTIFICATE, certificate.public_bytes(serialization.Encoding.PEM))
    return folder


def _write(file: Path, data: bytes) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as opened:
        opened.write(data)


def security(folder: Path):
    """distributed's Security with the class's certificates, for which nothing is spoken without."""
    import distributed

    certificate, key = folder / CERTIFICATE, folder / KEY
    for file in (certificate, key):
        if not file.is_file():
            raise FlashLadderError(
                f"{file} does not exist. A cluster is reached by the class's certificates alone: `make certificates` "
                "makes them; put the folder where every worker reads it, and name it by --certificates."
            )
    if key.stat().st_mode & 0o077:
        raise FlashLadderError(f"{key} can be read by others, who could run code as you then: `chmod 600 {key}`.")
    files = {"tls_ca_file": str(certificate)}
    for role in ("client", "scheduler", "worker"):
        files |= {f"tls_{role}_cert": str(certificate), f"tls_{role}_key": str(key)}
    return distributed.Security(require_encryption=True, **files)


def options_of_dask(folder: Path) -> str:
    """For `dask scheduler` and `dask worker`."""
    certificate, key = folder / CERTIFICATE, folder / KEY
    return f"--tls-ca-file {certificate} --tls-cert {certificate} --tls-key {key}"
