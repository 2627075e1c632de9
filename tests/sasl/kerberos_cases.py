"""Rules for names of Kerberos principals: what becomes of a name, None where no rule fits. Kafka says the same."""

from __future__ import annotations

REALM = "MOLDAU.TEST"
RULES: list[tuple[str, str, str | None]] = [
    ("DEFAULT", "ada@MOLDAU.TEST", "ada"),
    ("DEFAULT", "kafka/host.example@MOLDAU.TEST", "kafka"),
    ("DEFAULT", "ada@ELSEWHERE", None),
    ("DEFAULT", "ada", "ada"),
    ("DEFAULT", "ada@", None),
    ("DEFAULT", "a@b@c", None),
    ("DEFAULT", "a/b/c@MOLDAU.TEST", None),
    ("RULE:[1:$1]", "Ada@ELSEWHERE", "Ada"),
    ("RULE:[1:$1]/L", "Ada@ELSEWHERE", "ada"),
    ("RULE:[1:$1]/U", "Ada@ELSEWHERE", "ADA"),
    ("RULE:[1:$1.$0]", "ada@ELSEWHERE", "ada.ELSEWHERE"),
    ("RULE:[1:$1@$0]", "ada@ELSEWHERE", None),
    ("RULE:[1:$1]", "svc/host@ELSEWHERE", None),
    ("RULE:[2:$1-$2]", "svc/host@ELSEWHERE", "svc-host"),
    ("RULE:[2:$2;$1](^host;.*$)s/^host;//", "svc/host@ELSEWHERE", "svc"),
    ("RULE:[1:$1@$0](.*@ELSEWHERE)s/@.*//,DEFAULT", "ada@ELSEWHERE", "ada"),
    ("RULE:[1:$1@$0](.*@ELSEWHERE)s/@.*//,DEFAULT", "ada@MOLDAU.TEST", "ada"),
    ("RULE:[1:$1@$0](.*@ELSE)s/@.*//,DEFAULT", "ada@ELSEWHERE", None),
    ("RULE:[1:$1]s/a/o/", "abba@X", "obba"),
    ("RULE:[1:$1]s/a/o/g", "abba@X", "obbo"),
    ("RULE:[1:$1]s/a/o/g/U", "abba@X", "OBBO"),
    ("RULE:[1:$1]s/(.)b*(.)/$2x$1/", "abba@X", "axa"),
    ("RULE:[1:$1]s/x*/-/g", "ab@X", "-a-b-"),
    ("RULE:[1:fixed]", "ada@X", "fixed"),
    ("RULE:[1:$1](b.*),RULE:[1:x$1](xa.*)", "ada@X", "xada"),
]
REFUSED = [
    "",
    "default",
    "RULE:",
    "RULE:[:$1]",
    "RULE:[1:$1](",
    "RULE:[1:$1]s/a/b",
    "RULE:[1:$1]/X",
    "RULE:[1:$1]/Lx",
    "RULE:[1:$2]",
    "RULE:[1:$1]([)",
    "RULE:[1:$1]s/a/$1/",
    "DEFAULT ,",
]
