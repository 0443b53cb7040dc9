#!/usr/bin/env python3
"""Opens the next step of this task.

Usage: /app/unlock STEP ANSWER

ANSWER is the answer to the step before STEP. The step is printed, and its data are written to
step-STEP.tsv beside this program.
"""

import hashlib
import hmac
import sys
from pathlib import Path

# One guess costs 2**15 * 8 * 128 bytes = 32 MiB of memory, passed over twice.
SCRYPT_N, SCRYPT_R, SCRYPT_P = 2**15, 8, 1
SALT_BYTES, TAG_BYTES = 16, 32


class WrongAnswerError(Exception):
    """The answer does not open this step."""


def _keys(answer: str, salt: bytes) -> tuple[bytes, bytes]:
    """A key for the cipher and one for the tag."""
    key = hashlib.scrypt(
        answer.encode(),
        salt=salt,
        n=SCRYPT_N,
        r=SCRYPT_R,
        p=SCRYPT_P,
        maxmem=2 * 128 * SCRYPT_N * SCRYPT_R,
        dklen=64,
    )
    return key[:32], key[32:]


def _xor_with_keystream(key: bytes, data: bytes) -> bytes:
    """HMAC-SHA256 in counter mode. Each key is used once: it comes from a salt of its own."""
    blocks = range((len(data) + 31) // 32)
    stream = b"".join(hmac.digest(key, block.to_bytes(8, "big"), "sha256") for block in blocks)
    return bytes(a ^ b for a, b in zip(data, stream, strict=False))


def _tag(key: bytes, step: int, salt: bytes, ciphertext: bytes) -> bytes:
    return hmac.digest(key, step.to_bytes(8, "big") + salt + ciphertext, "sha256")


def seal(step: int, answer: str, text: str, table: str, salt: bytes) -> bytes:
    """Encrypt, then authenticate: salt, tag, ciphertext of the step's text and table."""
    cipher_key, tag_key = _keys(answer, salt)
    ciphertext = _xor_with_keystream(cipher_key, f"{text}\0{table}".encode())
    return salt + _tag(tag_key, step, salt, ciphertext) + ciphertext


def unseal(step: int, answer: str, sealed: bytes) -> tuple[str, str]:
    """Text and table of a step; nothing is decrypted unless the tag is right."""
    salt, rest = sealed[:SALT_BYTES], sealed[SALT_BYTES:]
    tag, ciphertext = rest[:TAG_BYTES], rest[TAG_BYTES:]
    cipher_key, tag_key = _keys(answer, salt)
    if not hmac.compare_digest(tag, _tag(tag_key, step, salt, ciphertext)):
        raise WrongAnswerError
    text, table = _xor_with_keystream(cipher_key, ciphertext).decode().split("\0")
    return text, table


def main() -> int:
    """Run the command; 0 when the step opened, 1 for a wrong answer, 2 for a wrong call."""
    here = Path(__file__).resolve().parent
    if len(sys.argv) != 3 or not sys.argv[1].isdecimal():
        print("Usage: /app/unlock STEP ANSWER", file=sys.stderr)
        return 2
    step = int(sys.argv[1])
    sealed = here / "sealed" / str(step)
    if not sealed.is_file():
        print(f"There is no sealed step {step}.", file=sys.stderr)
        return 2
    try:
        text, table = unseal(step, sys.argv[2].strip(), sealed.read_bytes())
    except WrongAnswerError:
        print(f"Wrong: this is not the answer to step {step - 1}.", file=sys.stderr)
        return 1
    (here / f"step-{step}.tsv").write_text(table)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
