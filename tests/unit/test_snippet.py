"""What is kept of a receiver's answer."""

from __future__ import annotations

from tests.support.cases import each

from tocsin.model.redaction import ANSWER_CHARS_MAX, answer_snippet, secrets_of


@each(
    "body, kept",
    [
        (b"", None),
        (b" \r\n", None),
        (b"disk full", "disk full"),
        ("<h1>\n  Zu viel\tlos: für heute\n</h1>".encode(), "<h1> Zu viel los: für heute </h1>"),
        (b"a\x1b[31mb\xe2\x80\xae", "a\\u001b[31mb\\u202e"),
        (b"\x89PNG\r\n\x1a\n\0\0", "[10 bytes]"),
        (b"caf\xe9", "[4 bytes]"),
        (
            b'{"code":"E1","access_token": "s3cr3t\\"x","pin":1234,"key":null}',
            '{"code":"E1","access_token": "[redacted]","pin":"[redacted]","key":null}',
        ),
        (b'{"password":"never clo', '{"password":"[redacted]"'),
        (b"token=abc&user=7", "token=[redacted]&user=7"),
        (b"X-Api-Key: abc, retry: 5", "X-Api-Key: [redacted], retry: 5"),
        (b"refused: Bearer eyJhbGciOi", "refused: Bearer [redacted]"),
        (b"see https://u:p@h/?sig=1&a=2", "see https://[redacted]@h/?sig=[redacted]&a=2"),
    ],
)
def test_answers_are_kept_as_one_line_without_secrets(body: bytes, kept: str | None) -> None:
    assert answer_snippet(body) == kept


def test_long_answers_are_cut() -> None:
    kept = answer_snippet(b"x" * 5_000)
    assert kept == "x" * (ANSWER_CHARS_MAX - 1) + "…"
    assert answer_snippet(b"\0" * 5_000, truncated=True) == "[more than 5000 bytes]"


def test_a_character_cut_in_two_is_no_binary_answer() -> None:
    body = b"x" * 1_999 + "é".encode()
    assert str(answer_snippet(body)).startswith("xxx")
    assert answer_snippet("aé".encode()[:-1], truncated=True) == "a"


def test_secrets_of_the_request_are_not_repeated() -> None:
    secrets = secrets_of("https://h/?token=0123456789", [("authorization", "Bearer abcdefghij")])
    assert (
        answer_snippet(b"you sent 0123456789 and abcdefghij", secrets=secrets) == "you sent [redacted] and [redacted]"
    )
    hidden = b" " * 1_990 + b"0123456789"
    assert answer_snippet(hidden, secrets=secrets) == "[redacted]"
