"""Redaction: secrets are removed from all that leaves the program: reports, messages, recordings, what `read` prints.

A value is removed if its name looks like a token, key, password, secret or credential, in the syntax of environments,
command lines, JSON, INI files and HTTP headers. Values that are recognizable (private keys, URLs with a password,
tokens of well-known services) are removed everywhere. What a finding needs stays: versions, paths, hashes, addresses.

Every pattern goes over a text once, also over a hostile one: runs have bounds, or begin where none can be before them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache, lru_cache
from operator import is_
from typing import TYPE_CHECKING, TypeVar, cast

from ncheck.expression import expression
from ncheck.model.plan import LaunchPlan, Setting

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue


REDACTED = "<redacted>"

# Of these words one is in each name of a secret.
_IN_NAMES = ("token", "secret", "pass", "cred", "key", "author", "cook", "docker", "jwt", "psk", "pwd")

# HF_TOKEN, db_password, aws.secretKey, MYSQL_PWD, PGPASSWORD, SLURM_JWT
_SECRET_NAME = expression(
    r"(?<!TIK)TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_?KEY|AUTHORIZATION|SSHPASS|COOKIE|REQUIREPASS"
    r"|DOCKERCONFIGJSON|(?<![A-Z])(?:KEY|PASS|JWT|PSK)(?![A-Z])|_PWD(?![A-Z])",
    re.IGNORECASE,
)

# api_key, client-key-data, PresharedKey: names that hold a secret in any syntax, where "key: value" alone may not
_CERTAIN_NAME = expression(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|JWT|REQUIREPASS|DOCKERCONFIGJSON"
    r"|(?:API|PRIVATE|ACCESS|SHARED|ACCOUNT|CLIENT|AUTH|SIGNING|ENCRYPTION|MASTER)[_-]?KEY",
    re.IGNORECASE,
)

# PUBLIC_KEY, ssh-key-fingerprint, StrictHostKeyChecking: these are public; hostKey -> host_Key
_PUBLIC_NAME = expression(r"PUBLIC|FINGERPRINT|HOST_?KEY", re.IGNORECASE)
_CAMEL = expression(r"(?<=[a-z0-9])(?=[A-Z])")
_NAME = r"(?P<name>(?<![\w.-])[A-Za-z_-][\w.-]{0,127})"

# export WANDB_API_KEY=two words          (a line of `env`, or a record of /proc/PID/environ)
_WHOLE_LINE = expression(
    rf"(?:^|(?<=\0))(?P<before>[ \t]*(?:export[ \t]+|declare -x[ \t]+)?){_NAME}(?P<is>=)(?P<value>[^\n\0]+)",
    re.MULTILINE,
)

# mpirun -x HF_TOKEN=abc --token=abc 'password="two words"'
_IN_SHELL = r"(?:\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')"
_ASSIGNED = expression(
    rf"{_NAME}(?P<is>=)(?P<value>(?:[\w.,-]{{0,256}}=)?{_IN_SHELL}(?:{_IN_SHELL}|[^\s,;&'\"\0])*|[^\s,;&'\"\0]+)"
)

# wandb: api_key: local-0123
_NAMED = expression(
    r"(?P<name>(?<![\w.-])[\w.-]{0,60}(?i:api|access|secret|private|auth)[_-]?(?i:key|token))"
    r"(?P<is>:[ \t]{1,20})(?P<value>[^\s,;&'\"\0]+)"
)

# NCCL INFO NCCL_FOO_TOKEN set by environment to abc
_SET_TO = expression(rf"{_NAME}(?P<is> set (?:by environment )?to )(?P<value>[^\s,;'\"\0]+)")

# A string in its quotes: "abc\"def", 'abc'
_STRING = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_PERHAPS = rf"(?=[\w.-]{{0,127}}?(?i:{'|'.join(_IN_NAMES)}))"  # the value of another name may have a secret in it
_FIELD = r"[A-Za-z_][\w.-]{0,127}"

# "secret_key": "abc\"def", 'token': 'abc', \"token\": \"abc\"
_QUOTED = expression(
    rf"(?P<quote>\\{{0,3}}[\"'])(?P<name>{_PERHAPS}{_FIELD})(?P=quote)(?P<is>[ \t]*:[ \t]*)"
    rf"(?P<value>{_STRING}|\\{{1,3}}\"[^\"\\\n]*\\{{1,3}}\"|(?!null|true|false)[\w.+/-]+)"
)

# The words of a command: ["train.py", "--api-key", "abc"]
_WORDS = expression(
    rf"(?P<quote>[\"'])(?P<name>--?[A-Za-z][\w-]{{0,127}})(?P=quote)(?P<is>[ \t]*,[ \t\n]{{0,40}})"
    rf"(?P<value>{_STRING})"
)

# {"name": "HF_TOKEN", "value": "abc"}, a variable in the spec of a pod
_PAIR = expression(
    rf"(?P<quote>[\"'])name(?P=quote)\s{{0,40}}:\s{{0,40}}(?P=quote)(?P<name>{_FIELD})(?P=quote)\s{{0,40}},\s{{0,40}}"
    rf"(?P=quote)value(?P=quote)\s{{0,40}}:\s{{0,40}}(?P<value>{_STRING})"
)
_PAIR_TURNED = expression(
    rf"(?P<quote>[\"'])value(?P=quote)\s{{0,40}}:\s{{0,40}}(?P<value>{_STRING})\s{{0,40}},\s{{0,40}}"
    rf"(?P=quote)name(?P=quote)\s{{0,40}}:\s{{0,40}}(?P=quote)(?P<name>{_FIELD})(?P=quote)"
)
_PAIR_LINES = expression(
    rf"(?<![\w.-])name:[ \t]+(?P<quote>[\"']?)(?P<name>{_FIELD})(?P=quote)[ \t]*\n[ \t]*value:[ \t]+"
    r"(?P<value>\S[^\n\0]*)"
)

# aws_secret_access_key = wJalrXUtnFEMI          (an INI file)
_INI = expression(
    r"^(?P<before>[ \t]*)(?P<name>[A-Za-z_][\w.-]{0,127})(?P<is>[ \t]+=[ \t]*|=[ \t]+)(?P<value>\S[^\n\0]*)",
    re.MULTILINE,
)

# connect(host, password = 'abc')   |   error: PrivateKey = abc
_SPACED = expression(rf"{_NAME}(?P<is>[ \t]{{1,20}}=[ \t]{{0,20}})(?P<value>{_STRING}|[^\s,;&'\"\0]+)")

# password: hunter2          (YAML; a name that only ends in "key" is too common in the output of tools)
_YAML = expression(
    r"^(?P<before>[ \t-]*)(?P<name>[A-Za-z_.][\w.-]{0,127})(?P<is>:[ \t]+)(?P<value>\S[^\n\0]*)", re.MULTILINE
)

# {HF_TOKEN: abc, X: 1}   |   error: HF_TOKEN: abc was refused
_INLINE = expression(
    r"(?:(?<=[:,;{(\[\"'=-])|(?<=\s\s)|(?<=\s)(?=[\w.]{0,60}[_.-]))"
    r"(?P<before>[ \t-]{0,40})(?P<name>(?<![\w.-])[A-Za-z_.][\w.-]{0,127})(?P<is>:[ \t]{1,20})"
    rf"(?P<value>{_STRING}|(?![\w.-]+:\s)[^\s,;{{}}\]\"'\0]+)"
)

# curl -H 'X-Api-Key: abc'   |   PRIVATE-TOKEN: abc   |   Set-Cookie: session=abc; Path=/
_HEADER = expression(
    r"(?P<name>(?<![\w-])(?i:x-[\w-]{1,60}|private-token|job-token|api-?key|(?:set-)?cookie)(?![\w-]))"
    r"(?P<is>:[ \t]*)(?P<value>[^\s\"'][^\"'\r\n\0]*)"
)

# train.py --api-key abc
_OPTION = expression(r"(?P<name>(?<!\S)--?[A-Za-z][\w-]{0,127})(?P<is>[ \t]+)(?P<value>[^\s-][^\s\0]*)")

# A word of a command line: bare, or in quotes.
_WORD = r"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\0\"']+)"

# Tokens that services mark by their first letters, each with one that it is known by. These are known in a word, too.
_MARKED = (
    r"gh[opsur]_[A-Za-z0-9]{20,}",  # ghp_..., GitHub
    r"github_pat_\w{20,}",
    r"gl(?:pat|dt|rt|cbt|ptt|agent|soat|ft)-[\w-]{16,}",  # glpat-..., GitLab
    r"hf_[A-Za-z0-9]{20,}",  # Hugging Face
    r"sk-(?:proj|ant|svcacct|or)-[\w-]{16,}",  # sk-ant-..., OpenAI, Anthropic
    r"dckr_[op]at_[\w-]{20,}",  # Docker Hub
    r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])",  # AWS
)

# These only where a word begins.
_TOKENS = (
    r"sk-[A-Za-z0-9]{20,}",
    r"(?:nvapi|xai|pplx|tskey|NRAK|NRII)-[\w-]{20,}",  # nvapi-..., NGC, and others with a hyphen
    r"(?:gsk|r8|dop_v1|doo_v1|npm|glsa|glc|wandb_v1|lin_api|shpat|rpa|[srp]k_(?:live|test))_(?=[A-Za-z_]*\d)\w{20,}",
    r"xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{10,}",  # xoxb-..., Slack
    r"AKCp[A-Za-z0-9]{10,}",  # Artifactory
    r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}",  # Terraform
    r"SK[0-9a-f]{32}(?![A-Za-z0-9])",  # Twilio
    r"AIza[\w-]{35}",  # a key of Google's interfaces
    r"ya29\.[\w-]{20,}",  # Google OAuth
    r"GOCSPX-[\w-]{20,}",
    r"eyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]*",  # a JWT
    r"pypi-AgE[\w-]{20,}",
    r"hv[bsr]\.[\w-]{20,}",  # hvs...., Vault
    r"dapi[0-9a-f]{32}",  # Databricks
    r"SG\.[\w-]{16,}\.[\w-]{16,}",  # SendGrid
    r"AGE-SECRET-KEY-1[A-Z0-9]{20,}",
    r"\d{8,10}:AA[\w-]{33}",  # a bot of Telegram
    r"MUNGE:[A-Za-z0-9+/=]{16,}:?",
)

# What is a secret by its form alone. Everything else that is one follows a name or a program, after one of _AFTER.
# A word begins behind the n of a line break, too, where the text is a Python string: '...\neyJ...'
_TOKEN = "()(?:" + "|".join(_MARKED) + r"|(?:(?<![\w-])|(?<=\\[nrt]))(?:" + "|".join(_TOKENS) + "))"
# root:$6$salt$hash:19000:0:99999:7:::, the hash of a password
_HASH = r"()\$(?:[156y]|2[abxy]|7|apr1|argon2id?)\$[\w./$=,+-]{20,200}"
_FORMS = (expression(_TOKEN, re.DOTALL), expression(_HASH, re.DOTALL))
_AFTER = expression(r"[\s=:\0\"']")


def _after(program: str, option: str, word: str = _WORD) -> str:
    """Return the pattern of a word that a program takes for a password after this option."""
    return rf"(\b(?:{program})[\s\0](?:[^\n]{{0,300}}?[\s\0])??{option}){word}"


_GAP = r"[\s\0]{1,20}"

_PGPASS = (
    r"((?<![^\s=\"'])(?![0-9A-Fa-f:.]+(?:\n|\Z))[\w.*-]{1,255}:(?:\d{4,5}|\*):[\w.*-]{1,64}:[\w.@*-]{1,64}:)"
    r"[^\s:]+(?=\n|\Z)"
)

# Where a value is a secret by what is before it: words of which a text has one, in small letters, and the pattern.
_VALUES: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (words, expression(pattern, re.DOTALL))
    for words, pattern in (
        # -----BEGIN OPENSSH PRIVATE KEY----- ... -----END OPENSSH PRIVATE KEY-----, or truncated
        (("-----begin",),
         r"()-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----|\Z)"),
        # Private-Lines: 14 ... Private-MAC: ..., PuTTY's form of one
        (("private-lines",), r"(Private-Lines: \d{1,3}\s).*?(?=Private-MAC|\Z)"),
        # machine api.wandb.ai login user password abc, in one line or several
        (("machine",),
         r"((?:\b|(?<=\\n))machine\s{1,20}\S{1,256}\s{1,20}(?:(?:login|account)\s{1,20}\S{1,256}\s{1,20}){0,2}password\s{1,20})\S+"),
        # Authorization: Basic dXNlcjpwYXNz
        (("author",), r"((?i:\b(?:proxy-)?authorization)[\"']?\s{0,20}[:=]\s{0,20}[\"']?)[^\"'\r\n\0]+"),
        # curl -H 'X: bearer eyJhbGciOi...'
        (("bearer",), r"((?i:\bbearer)\s{1,20})[\w.~+/=-]{8,}"),
        # https://user:pass@host/path, socks5://:pass@host
        (("://",), r"((?<![\w+.-])[A-Za-z][\w+.-]{0,20}://[^\s/:@\"'\0]{0,256}:)[^\s/@\"'\0]{1,1024}(?=@)"),
        # https://ghp_abc@host/path
        (("://",), r"((?<![\w+.-])https?://)[^\s/:@\"'\0]{1,1024}(?=@)"),
        # https://hooks.slack.com/services/T0/B0/abc, https://discord.com/api/webhooks/1/abc
        (("/t/",), r"(://[^\s\"'\0]{1,256}?/t/)[\w.-]{8,}"),  # conda
        # webhooks of Teams, Telegram, Mattermost and others
        (("hook", "/bot", "/integration"),
         r"(https?://[^\s/\"'\0]{1,256}/(?:bot(?=\d)|(?:hooks|(?:incoming-)?webhook(?:s|b2)?|integration)/))[^\s\"'\0]+"),
        (("://",), r"(https://(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks)/)[^\s\"'\0]+"),
        # ?sv=2022-11-02&sig=abc%3D, &X-Amz-Signature=abc
        (("?", "&"),
         r"([?&](?:sig|[Ss]ignature|X-(?:Amz|Goog)-(?:Signature|Credential|Security-Token))=)[^\s&\"'\0]+"),
        (("",), _TOKEN),
        (("$",), _HASH),
        # "auths": {"nvcr.io": {"auth": "dXNlcjpwYXNz"}}
        (('auth"', 'token"'), r"(\"(?:auth|identitytoken|registrytoken)\"\s{0,20}:\s{0,20}\")[^\"\n]+"),
        # localhost:5432:jobs:me:secret, a line of .pgpass
        ((":",), _PGPASS),
        # openssl rsa -passin pass:secret
        (("-pass",), r"(-pass(?:in|out)?[\s\0=]pass:)[^\s\0]+"),
        # Command lines with a password where other programs have something else: mysql -u root -psecret
        (("mysql", "mariadb"), _after(r"(?:mysql|mariadb)[\w-]{0,20}", "-p")),
        (("sshpass",), _after("sshpass", r"-p[\s\0]{0,20}")),
        # docker login -u me -p secret
        (("login",), _after(
            r"(?:docker|podman|nerdctl|helm|skopeo|buildah|oras|crane|az|oc)[\s\0][^\n]{0,60}?\blogin",
            r"-p[\s\0=]{0,20}")),
        (("redis-cli",), _after("redis-cli", rf"-a{_GAP}")),
        (("ldap",), _after("ldap(?:search|modify|add|whoami)", rf"-w{_GAP}")),
        (("ipmitool", "sqlcmd"), _after("ipmitool|sqlcmd", rf"-P{_GAP}")),
        (("mongo",), _after("mongo(?:sh|dump|restore)?", rf"-p{_GAP}")),
        # curl -u me:secret https://host
        (("curl", "wget", "http"), _after(
            "curl|wget|https?",
            r"(?:-u|-U|-a|--user|--proxy-user)[\s\0=]{0,20}[\"']?[^\s\0:\"']{1,100}:(?!//)", r"[^\s\0\"']+")),
        # echo secret | sudo -S ls
        (("echo",),
         rf"(\becho{_GAP}(?:-n{_GAP})?){_WORD}(?=\s{{0,20}}\|\s{{0,20}}(?:sudo -S|passwd|chpasswd|docker login)\b)"),
        # kubectl create secret generic s --from-literal=user=secret
        (("--from-literal",), rf"(--from-literal[\s\0=][\w.-]{{1,128}}=){_WORD}"),
        # aws configure set aws_secret_access_key secret
        (("configure",),
         rf"(\bconfigure{_GAP}set{_GAP}[\w.-]{{0,60}}(?:secret|token|key)[\w.-]{{0,60}}{_GAP}){_WORD}"),
        # wandb login 0123..., forty digits
        # wandb: logged in with key 0123..., forty digits
        (("wandb",), r"(\bwandb\b[^\n]{0,200}?\b(?i:api|key|login|logged)\b[^\n]{0,200}?\b)[0-9a-f]{40}\b"),
        (("etcdctl",), _after("etcdctl", r"--user[\s\0=]{0,20}[\"']?[^\s\0:\"']{1,100}:", r"[^\s\0\"']+")),
        # the password is: abc
        (("is:",), r"(\b(?i:password|passphrase|secret|token|api key)\s{1,20}is\s{0,20}:\s{1,20})[^\s\"'\0]+"),
        (("wandb",), rf"(\bwandb{_GAP}login{_GAP}(?:--[\w-]{{1,40}}{_GAP}){{0,4}})[\w-]{{20,}}"),
    )
)  # fmt: skip


def secret_name(name: str) -> bool:
    """Return whether a variable, option or field with this name holds a secret."""
    words = _CAMEL.sub("_", name)
    return bool(_SECRET_NAME.search(words)) and not _PUBLIC_NAME.search(words)


# What ends a line or a word, as a Python or JSON string shows it.
_ESCAPED = (("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r"), ("\\x00", "\0"))


def redact(text: str) -> str:
    """Return the text with every secret replaced; everything else, also line breaks, is unchanged."""
    text = _redacted_plain(text)
    if any(escaped in text for escaped, _ in _ESCAPED):
        text = "\n".join(map(_redacted_within, text.split("\n")))
    return _redacted_strings(text)


_INNERMOST = 3  # strings in strings in strings
_IN_QUOTES = expression(r"(?P<quote>[\"'])(?P<inner>(?:(?!(?P=quote))[^\\]|\\.)*)(?:(?P=quote)|\Z)", re.DOTALL)
_ESCAPE = expression(r"\\(x00|u0000|[\"'\\/nrt]|)")
_CHARS = {"n": "\n", "t": "\t", "r": "\r", "x00": "\0", "u0000": "\0", "": "\ue000"}
_BACK = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\ue000": "\\"}


def _redacted_strings(text: str, depth: int = 0) -> str:
    """Return the text without the secrets of strings in which there are strings: JSON in JSON, a list in a message."""

    def cut(found: re.Match[str]) -> str:
        quote, inner = found["quote"], found["inner"]
        if "\\" not in inner and ("'" if quote == '"' else '"') not in inner:
            return found[0]
        plain = _ESCAPE.sub(lambda one: _CHARS.get(one[1], one[1]), inner)
        left = _redacted_plain(plain)
        if depth < _INNERMOST:
            left = _redacted_strings(left, depth + 1)
        if left == plain:
            return found[0]
        back = {**_BACK, quote: f"\\{quote}", "\0": "\\u0000" if "\\u0000" in inner else "\\x00"}
        return quote + "".join(back.get(char, char) for char in left) + found[0][1 + len(inner) :]

    return _IN_QUOTES.sub(cut, text) if '"' in text or "'" in text else text


def _redacted_within(line: str) -> str:
    """Return a line without the secrets in lines of a string in it, whose line breaks are written out."""
    plain = line
    for escaped, char in _ESCAPED:
        plain = plain.replace(escaped, char)
    cut = _redacted_plain(plain)
    if cut == plain:
        return line
    for escaped, char in _ESCAPED:
        cut = cut.replace(char, escaped)
    return cut


def _redacted_plain(text: str) -> str:
    if not _AFTER.search(text):
        for pattern in _FORMS:
            text = pattern.sub(rf"\1{REDACTED}", text)
        return text
    folded = text.casefold()
    for words, pattern in _VALUES:
        for word in words:
            if word in folded:
                text = pattern.sub(rf"\1{REDACTED}", text)
                break
    for word in _IN_NAMES:
        if word in folded:
            return _redacted_names(text)
    return text


def _redacted_names(text: str) -> str:
    """Return the text without the values of what has a secret's name."""
    text = _ASSIGNED.sub(_cut_assigned, _WHOLE_LINE.sub(_cut, text))
    for pattern in (_OPTION, _HEADER, _NAMED, _SET_TO):
        text = pattern.sub(_cut, text)
    for pattern in (_INI, _SPACED, _YAML, _INLINE):
        text = pattern.sub(_cut_certain, text)
    for pattern in (_QUOTED, _WORDS, _PAIR, _PAIR_TURNED):
        text = pattern.sub(_cut_quoted, text)
    return _PAIR_LINES.sub(_cut, text)


def redact_value(value: JsonValue) -> JsonValue:
    """Return the value with secrets replaced in its strings and in fields with the name of a secret."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_item(value, place) for place in range(len(value))]
    if isinstance(value, dict):
        named = value.get("name")  # {"name": "HF_TOKEN", "value": "abc"}, a variable in the spec of a pod
        own = {"value": named} if isinstance(named, str) else {}
        return {redact(name): _field(own.get(name, name), inner) for name, inner in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no such number
    return value


def _item(items: list[JsonValue], place: int) -> JsonValue:
    """Return one item of a list; in ["--api-key", "abc"] the one before it may say that it is a secret."""
    value, before = items[place], items[place - 1] if place else ""
    option = isinstance(before, str) and before.startswith("-") and "=" not in before
    if option and isinstance(value, str) and not value.startswith("-"):
        return _field(cast("str", before), value)
    return redact_value(value)


def _field(name: str, value: JsonValue) -> JsonValue:
    """Replace a secret field; a number only if the name is certain, because parsers need their numbers.

    A command line is redacted as a whole: in "--api-key abc" one word says that the next one is a secret.
    """
    if name == "argv" and isinstance(value, list) and all(isinstance(word, str) for word in value):
        line = " ".join(cast("list[str]", value))
        return redact_value(value) if redact(line) == line else [*redact(line).split(" ")]
    if not value or isinstance(value, bool) or not secret_name(name):
        return redact_value(value)
    if isinstance(value, list):
        return [_field(name, item) for item in value]
    certain = isinstance(value, str) or (isinstance(value, (int, float)) and not _weak(name))
    return REDACTED if certain else redact_value(value)


# StrictHostKeyChecking=no, PasswordAuthentication=yes: a setting, not a secret
_NO_SECRETS = frozenset({"", REDACTED, "yes", "no", "true", "false", "none", "null", "ask", "on", "off", "accept-new"})

# max_tokens=4096, tokens_per_second: 1234.5
_COUNT = expression(r"[\d.,]{1,20}(?:\s|\Z)")


def _cut(found: re.Match[str]) -> str:
    value, start = found["value"].strip("\\\"'").lower(), found.start("value") - found.start()
    end = start + len(found["value"])
    if not secret_name(found["name"]) or value in _NO_SECRETS or value.startswith(REDACTED):
        return found[0]
    if "tokens" in found["name"].lower() and _COUNT.match(value):
        return found[0]
    return found[0][:start] + REDACTED + found[0][end:]


def _cut_assigned(found: re.Match[str]) -> str:
    """Replace the value of a variable, also where an option has it: --env=HF_TOKEN=abc, --export=ALL,HF_TOKEN=abc."""
    if "=" not in found["value"] or secret_name(found["name"]):
        return _cut(found)
    start = found.start("value") - found.start()
    return found[0][:start] + _ASSIGNED.sub(_cut_assigned, found["value"])


def _cut_quoted(found: re.Match[str]) -> str:
    """Replace a field of JSON so that the result is still JSON."""
    cut, value = _cut(found), found["value"]
    if cut == found[0]:
        return cut
    quote = value[0] if value[0] in "\"'" else found["quote"]
    return cut.replace(REDACTED, f"{quote}{REDACTED}{quote}")


def _cut_certain(found: re.Match[str]) -> str:
    return found[0] if _weak(found["name"]) else _cut(found)


def _weak(name: str) -> bool:
    """Return whether the name looks secret only because it contains the word "key" or "pass"."""
    return not _CERTAIN_NAME.search(_CAMEL.sub("_", name))


Record = TypeVar("Record")

# Fields that name a node or a code: they are not text, and other fields refer to them.
_NAMES = frozenset({"name", "node", "nodes", "code", "check", "see", "where"})


def redact_record(record: Record) -> Record:
    """Return a frozen record with secrets replaced in its text, in the records inside it too.

    What is typed or started stays as it is: the lines and the command of a launch plan, the values of its variables.
    """
    return cast("Record", _redacted(record))


def _redacted(value: object, *, named: bool = False) -> object:
    """Return the value itself where nothing in it changes."""
    kind = type(value)
    if kind in _NO_TEXT:
        return value
    if kind is str:
        return value if named else _redacted_text(cast("str", value))
    if kind is tuple and value:
        items = cast("tuple[object, ...]", value)
        if named and type(items[0]) is str:  # all are names then
            return value
        plain = tuple([_redacted(item, named=named) for item in items])
        return value if all(map(is_, items, plain)) else plain
    if isinstance(value, Mapping):
        cleaned = {_redacted(name): _redacted(inner) for name, inner in value.items()}
        same = all(map(is_, cleaned.values(), value.values())) and all(map(is_, cleaned, value))
        return value if same and len(cleaned) == len(value) else cleaned
    changed = {}
    for name in _fields_of(kind):  # type: ignore[arg-type]  # every class is hashable
        held = getattr(value, name)
        if not held or type(held) in _NO_TEXT:
            continue
        if (inner := _redacted(held, named=name in _NAMES)) is not held:
            changed[name] = inner
    return replace(value, **changed) if changed else value  # type: ignore[type-var]  # a record, if it has fields


_NO_TEXT = frozenset((int, float, bool, type(None)))


@cache
def _fields_of(kind: type) -> tuple[str, ...]:
    """Return the fields of a record without those that are taken as they are; none of enumerations and classes."""
    if not is_dataclass(kind):
        return ()
    return tuple(field.name for field in fields(kind) if field.name not in _TYPED.get(kind, ()))


# What is typed or started: the user's own words, and values that must be right.
_TYPED: Mapping[type, tuple[str, ...]] = {LaunchPlan: ("lines", "command"), Setting: ("value",)}


@lru_cache(maxsize=4096)  # a report has the same reason for many nodes
def _redacted_text(text: str) -> str:
    return redact(text)
