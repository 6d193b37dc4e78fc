"""Which addresses an HTTP target may have.

The list is ours and not `ipaddress.is_private`: Python 3.11.7 calls NAT64, 6to4 and IPv4-compatible
forms of loopback global (CVE-2024-4032 and the reliability page, S1). A name is resolved once,
every address is checked, and the checked address is the one connected to, so a name that changes
its mind between check and connect gains nothing.
"""

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NEVER: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "169.254.0.0/16",  # link-local, with the metadata services of clouds
        "fe80::/10",
        "fd00:ec2::/32",  # metadata service of AWS over IPv6
        "100.100.100.200/32",  # metadata service of Alibaba
        "0.0.0.0/8",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "ff00::/8",
        "::/128",
    )
)
_PRIVATE: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "::1/128",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "fc00::/7",
        "fec0::/10",
    )
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")


def embedded_in(address: Address) -> Address:
    """The IPv4 address that an IPv6 form carries (mapped, NAT64, 6to4, Teredo, IPv4-compatible),
    else the address itself.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def refusal(text: str, *, allow_private: bool) -> str:
    """Why a target may not have this address; empty = it may.

    Link-local, multicast and metadata addresses are refused always, private ones and loopback
    unless the operator allows them.
    """
    address = embedded_in(ipaddress.ip_address(text.partition("%")[0]))
    if any(address in network for network in _NEVER):
        return f"{text} is a link-local, metadata or multicast address"
    if not allow_private and any(address in network for network in _PRIVATE):
        return f"{text} is a private address, which this worker's settings do not allow"
    return ""
