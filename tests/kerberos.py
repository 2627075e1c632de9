"""A KDC in a folder, on loopback, without root: a realm, principals and their keytabs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from moldau.testing.ports import free_port
from tests.conformance.differential.brokers import await_port
from tests.needs import find

REALM = "MOLDAU.TEST"
SERVICE = "kafka/localhost"
USERS = ("ada", "bob")
SECONDS = 120
KRB5 = """
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
[domain_realm]
  localhost = {realm}
"""
KDC = """
[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
    supported_enctypes = aes256-cts-hmac-sha1-96:normal
  }}
"""


@dataclass(frozen=True)
class Kdc:
    """A realm, whose KDC runs until it is killed."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What processes need to find it, and the module `gssapi`; Java's too."""
        return {
            "KRB5_CONFIG": str(self.folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.folder}/tickets",
            "KRB5RCACHEDIR": str(self.folder),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(find("gssapi").path), os.environ.get("PYTHONPATH")])),
            "JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={self.folder}/krb5.conf -Djava.net.preferIPv4Stack=true",
        }

    def keytab(self, name: str) -> str:
        return str(self.folder / f"{name.partition('/')[0]}.keytab")

    def jaas(self, name: str) -> str:
        options = f'useKeyTab=true storeKey=true keyTab="{self.keytab(name)}" principal="{name}@{REALM}"'
        return f"com.sun.security.auth.module.Krb5LoginModule required {options};"

    def run(self, *command: str, check: bool = True, **more: str) -> str:
        """Run a command that finds the KDC; returns what it says."""
        done = subprocess.run(
            command,
            env={**os.environ, **self.environment, **more},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
        )
        assert not check or done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
        return done.stdout + ("" if check else done.stderr)

    def add(self, name: str) -> None:
        self.run("kadmin.local", "-q", f"addprinc -randkey {name}")
        self.run("kadmin.local", "-q", f"ktadd -k {self.keytab(name)} {name}")


@contextmanager
def kdc(folder: Path) -> Iterator[Kdc]:
    """Make a realm with a service and users, and start its KDC; this process and its children find it.

    Whatever happens, it is ended and forgotten again.
    """
    folder.mkdir()
    port = free_port()
    (folder / "krb5.conf").write_text(KRB5.format(realm=REALM, port=port))
    (folder / "kdc.conf").write_text(KDC.format(realm=REALM, port=port, folder=folder))
    made = Kdc(folder)
    made.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of this test")
    for name in (SERVICE, *USERS):
        made.add(name)
    with (folder / "kdc.log").open("wb") as log:
        environment = {**os.environ, **made.environment}
        process = subprocess.Popen(["krb5kdc", "-n"], env=environment, stdout=log, stderr=log)
    try:
        await_port(process, port, folder / "kdc.log")
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(find("gssapi").path))
            for name, value in made.environment.items():
                patch.setenv(name, value)
            yield made
    finally:
        process.kill()
        process.wait()
