"""The output of ip and ifconfig, and NCCL's log: the interfaces, their classes, and the one for data."""

from __future__ import annotations

import pytest
from ncheck.read.interfaces import data_nic, parse_interfaces
from ncheck.read.listed_interface import class_of
from ncheck.read.text import read_as

LO = """1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
"""
HOST = (
    LO
    + """2: eno1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP group default qlen 1000
    link/ether 3c:ec:ef:00:00:10 brd ff:ff:ff:ff:ff:ff
    altname enp24s0f0
    inet 10.7.0.21/22 brd 10.7.3.255 scope global dynamic noprefixroute eno1
       valid_lft 7201sec preferred_lft 7201sec
    inet6 fe80::3eec:efff:fe00:10/64 scope link
3: eno2: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc mq state DOWN group default qlen 1000
    link/ether 3c:ec:ef:00:00:11 brd ff:ff:ff:ff:ff:ff
4: ibs1f0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 4092 qdisc mq state UP group default qlen 256
    link/infiniband 00:00:10:49:fe:80:00:00:00:00:00:00:b8:ce:f6:03:00:00:00:01 brd 00:ff:ff:ff:ff:12:40:1b:ff:ff
5: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN group default
    link/ether 02:42:11:22:33:44 brd ff:ff:ff:ff:ff:ff
    inet 172.17.0.1/16 brd 172.17.255.255 scope global docker0
6: br-0123456789ab: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default
    link/ether 02:42:55:66:77:88 brd ff:ff:ff:ff:ff:ff
    inet 172.18.0.1/16 brd 172.18.255.255 scope global br-0123456789ab
8: vethc0ffee1@if7: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master br-0123456789ab state UP
    link/ether 9e:00:00:00:00:08 brd ff:ff:ff:ff:ff:ff link-netnsid 0
9: tailscale0: <POINTOPOINT,MULTICAST,NOARP,UP,LOWER_UP> mtu 1280 qdisc fq_codel state UNKNOWN group default qlen 500
    link/none
    inet 100.90.1.2/32 scope global tailscale0
"""
)
POD = (
    LO
    + """2: eth0@if41: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 qdisc noqueue state UP group default
    link/ether 0a:58:0a:f4:03:09 brd ff:ff:ff:ff:ff:ff link-netnsid 0
    inet 10.244.3.9/24 brd 10.244.3.255 scope global eth0
"""
)
BONDED = """2: enp1s0f0: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 9000 qdisc mq master bond0 state UP qlen 1000
    link/ether b8:59:9f:00:00:01 brd ff:ff:ff:ff:ff:ff
4: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP qlen 1000
    link/ether b8:59:9f:00:00:01 brd ff:ff:ff:ff:ff:ff
5: bond0.40@bond0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP qlen 1000
    link/ether b8:59:9f:00:00:01 brd ff:ff:ff:ff:ff:ff
    inet 10.40.0.3/24 brd 10.40.0.255 scope global bond0.40
"""
NEW = """ens7: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 9001
        inet 172.31.9.4  netmask 255.255.240.0  broadcast 172.31.15.255
        ether 0e:11:22:33:44:55  txqueuelen 1000  (Ethernet)

ens7:1: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 9001
        inet 172.31.9.5  netmask 255.255.240.0  broadcast 172.31.15.255

wlan0: flags=4099<UP,BROADCAST,MULTICAST>  mtu 1500
        inet *.*.*.*  netmask 255.255.255.0  broadcast 192.168.1.255
"""
OLD = """eth1      Link encap:Ethernet  HWaddr 00:25:90:AA:BB:CC
          inet addr:10.11.0.8  Bcast:10.11.255.255  Mask:255.255.0.0
          UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1

ib0       Link encap:InfiniBand  HWaddr 80:00:00:48:FE:80:00:00:00:00:00:00:00:00:00:00:00:00:00:00
          inet addr:10.12.0.8  Bcast:10.12.255.255  Mask:255.255.0.0
          UP BROADCAST RUNNING MULTICAST  MTU:65520  Metric:1
"""
BRIEF = """lo               UNKNOWN        127.0.0.1/8 ::1/128
eno1             UP             10.7.0.21/22 metric 100 fe80::1/64
eno2             DOWN
veth9@if2        UP             fe80::2/64
"""
JSON = (
    '[{"ifindex":2,"link_index":9,"ifname":"eth0","flags":["BROADCAST","UP","LOWER_UP"],"mtu":1500,"operstate":"UP",'
    '"link_type":"ether","address":"aa:00:00:00:00:01","link_netnsid":0,'
    '"addr_info":[{"family":"inet","local":"172.17.0.5","prefixlen":16,"scope":"global","label":"eth0"}]}]'
)
LOG = "gpu1:77:90 [0] NCCL INFO NET/Socket : Using [0]enp3s0:10.1.1.4<0> [1]veth00a1b2c:fe80::1%veth00a1b2c<0>\n"


def told(text: str) -> tuple[str, dict[str, tuple[str, str | None, str | None]], str | None]:
    tool, seen = parse_interfaces(text)
    return tool, {one.name: (class_of(one, seen), one.state, one.ipv4) for one in seen}, data_nic(seen)


def test_ip_address_of_a_host_with_containers() -> None:
    assert told(HOST) == (
        "ip_addr",
        {
            "lo": ("loopback", "UNKNOWN", "127.0.0.1"),
            "eno1": ("physical", "UP", "10.7.0.21"),
            "eno2": ("physical", "DOWN", None),
            "ibs1f0": ("ib", "UP", None),
            "docker0": ("container", "DOWN", "172.17.0.1"),
            "br-0123456789ab": ("container", "UP", "172.18.0.1"),
            "vethc0ffee1": ("container", "UP", None),
            "tailscale0": ("tunnel", "UNKNOWN", "100.90.1.2"),
        },
        "eno1",
    )


def test_a_containers_eth0_is_a_veth_and_still_its_data_nic() -> None:
    assert told(POD)[1:] == (
        {"lo": ("loopback", "UNKNOWN", "127.0.0.1"), "eth0": ("container", "UP", "10.244.3.9")}, "eth0",
    )  # fmt: skip
    assert told(JSON) == ("ip_json", {"eth0": ("container", "UP", "172.17.0.5")}, "eth0")


def test_the_vlan_on_a_bond_carries_the_address() -> None:
    assert told(BONDED)[1:] == (
        {
            "enp1s0f0": ("bond_slave", "UP", None),
            "bond0": ("bond", "UP", None),
            "bond0.40": ("vlan", "UP", "10.40.0.3"),
        },
        "bond0.40",
    )


def test_a_bond_that_lies_behind_the_cut_is_known_by_its_members() -> None:
    assert data_nic(parse_interfaces(BONDED.split("4: bond0", maxsplit=1)[0])[1]) == "bond0"


def test_ifconfig_new_and_old() -> None:
    assert told(NEW) == (
        "ifconfig_new",
        {
            "ens7": ("cloud", "UP", "172.31.9.4"),
            "ens7:1": ("alias", "UP", "172.31.9.5"),
            "wlan0": ("wifi", "UP", None),
        },
        "ens7",
    )
    assert told(OLD) == (
        "ifconfig_old", {"eth1": ("physical", "UP", "10.11.0.8"), "ib0": ("ib", "UP", "10.12.0.8")}, "ib0",
    )  # fmt: skip


def test_ip_in_brief() -> None:
    assert told(BRIEF) == (
        "ip_br",
        {
            "lo": ("loopback", "UNKNOWN", "127.0.0.1"),
            "eno1": ("physical", "UP", "10.7.0.21"),
            "eno2": ("physical", "DOWN", None),
            "veth9": ("container", "UP", None),
        },
        "eno1",
    )


def test_ip_a_line_an_address() -> None:
    text = "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever\n"
    text += "2: eno1    inet 10.7.0.21/22 brd 10.7.3.255 scope global eno1\\       valid_lft forever\n"
    assert told(text)[1:] == (
        {"lo": ("loopback", None, "127.0.0.1"), "eno1": ("physical", None, "10.7.0.21")}, "eno1",
    )  # fmt: skip


def test_nccls_own_words() -> None:
    assert told(LOG) == (
        "nccl_log", {"enp3s0": ("physical", "UP", "10.1.1.4"), "veth00a1b2c": ("container", "UP", None)}, "enp3s0",
    )  # fmt: skip


def test_a_paste_that_lost_its_indentation_and_gained_a_prompt_reads_the_same() -> None:
    bare = "root@gpu1:~# ip a\r\n" + "\r\n".join(line.strip() for line in HOST.splitlines())
    assert told(bare) == told(HOST)


def test_the_private_network_comes_before_the_public_one() -> None:
    text = "eth0             UP             203.0.114.9/24\neth1             UP             10.132.0.3/20\n"
    assert data_nic(parse_interfaces(text)[1]) == "eth1"


def equal(*addresses: str) -> str:
    return "".join(f"ens{at}             UP             {address}\n" for at, address in enumerate(addresses))


def test_four_equal_networks_decide_nothing_and_four_interfaces_of_one_network_do() -> None:
    rails = equal(*(f"10.{at}.0.8/24" for at in range(4)))
    assert data_nic(parse_interfaces(rails)[1]) is None
    named = "ens0 (10.0.0.8), ens1 (10.1.0.8), ens2 (10.2.0.8), ens3 (10.3.0.8)"
    assert [remark.text for remark in read_as("nics", rails).remarks][:1] == [
        f"this text does not show which interface is for a job's data: {named} are equal"
    ]
    assert data_nic(parse_interfaces(equal(*(f"10.1.0.{at}/24" for at in range(4))))[1]) == "ens0"


def test_the_rail_with_a_host_route_is_not_the_one_to_meet_on() -> None:
    rails = NEW.replace("172.31.9.5  netmask 255.255.240.0", "192.168.8.1  netmask 255.255.255.255").replace(
        "ens7:1:", "ens9:"
    )
    assert data_nic(parse_interfaces(rails)[1]) == "ens7"


@pytest.mark.parametrize("text", ["", "bash: ip: command not found\n", '[{"ifindex":1,"ifname":"lo"'])
def test_a_text_without_interfaces_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"no interface found|truncated"):
        parse_interfaces(text)


def test_ifconfig_of_a_tunnel_an_infiniband_unspec_and_a_shells_quote() -> None:
    text = """+ shown='cilium_host: flags=4291<UP,BROADCAST,RUNNING,NOARP,MULTICAST>  mtu 1500
        inet 10.0.7.64  netmask 255.255.255.255
rail0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 2044
        inet 10.9.0.5  netmask 255.255.255.0
        unspec 20-00-10-86-FE-80-00-00-00-00-00-00-00-00-00-00  txqueuelen 256  (UNSPEC)
sit0      Link encap:IPv6-in-IPv4
          NOARP  MTU:1480  Metric:1
"""
    assert told(text)[1:] == ({
        "cilium_host": ("overlay", "UP", "10.0.7.64"), "rail0": ("ib", "UP", "10.9.0.5"),
        "sit0": ("tunnel", "DOWN", None),
    }, "rail0")  # fmt: skip


def test_a_containers_eth0_is_known_by_the_address_that_docker_gave_it() -> None:
    text = "eth0: flags=4163<UP,RUNNING>  mtu 1500\n        inet 172.17.0.6  netmask 255.255.0.0\n"
    assert told(text)[1] == {"eth0": ("physical", "UP", "172.17.0.6")}
    docker = text + "        ether 02:42:ac:11:00:06  txqueuelen 0  (Ethernet)\n"
    assert told(docker) == ("ifconfig_new", {"eth0": ("container", "UP", "172.17.0.6")}, "eth0")


def test_ip_link_in_brief_has_flags_and_hardware_addresses() -> None:
    text = """ens7f0   UP    b8:ce:f6:00:00:07 <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP>
rail0    UP    00:00:10:49:fe:80:00:00:00:00:00:00:b8:ce:f6:03:00:00:00:01 <BROADCAST,MULTICAST,UP,LOWER_UP>
"""
    assert told(text)[1] == {"ens7f0": ("bond_slave", "UP", None), "rail0": ("ib", "UP", None)}


def test_an_address_that_is_masked_in_a_log_hides_no_interface() -> None:
    text = "g1:5:5 [0] NCCL INFO Bootstrap: Using ib0.8002:X.X.X.X<0>\n"
    assert told(text) == ("nccl_log", {"ib0.8002": ("ib", "UP", None)}, "ib0.8002")


def test_a_state_that_is_cut_off_is_none() -> None:
    text = "2: ens7f0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state DOW"
    assert told(text)[1] == {"ens7f0": ("physical", None, None)}


def test_json_of_ip_is_read_however_long_its_line_and_however_it_is_laid_out() -> None:
    many = ",".join(JSON[1:-1].replace("eth0", f"eth{number}") for number in range(20))
    assert len(parse_interfaces(f"[{many}]")[1]) == 20
    assert told(JSON.replace("[{", "[\n  {")) == told(JSON)


def test_lines_that_a_mail_wrapped_are_read_together() -> None:
    wrapped = """> > 8: ib1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 2044 qdisc pfifo_fast
> > state UP mode DEFAULT group default qlen 256
> >     link/infiniband
> > 80:00:00:66:fe:80:00:00:00:00:00:00:24:8a:07:03:00:00:00:01 brd
> >     vf 0 MAC 14:80:00:00:66:fe, vlan 4095, spoof checking off
"""
    assert told(wrapped)[1] == {"ib1": ("ib", "UP", None)}
    old = """ib0 Link encap:InfiniBand HWaddr
80:00:00:48:FE:80:00:00:00:00:00:00:00:00:00:00:00:00:00:00
inet addr:10.148.0.9 Bcast:10.148.255.255 Mask:255.255.0.0
inet6 addr: fe80::202:c903:fb:9/64 Scope:Link UP BROADCAST RUNNING
MULTICAST MTU:65520 Metric:1
"""
    assert told(old) == ("ifconfig_old", {"ib0": ("ib", "UP", "10.148.0.9")}, "ib0")


def test_the_short_table_of_ifconfig() -> None:
    table = """Iface      MTU    RX-OK RX-ERR RX-DRP RX-OVR    TX-OK TX-ERR TX-DRP TX-OVR Flg
ens9f0     1500   100000     0      0 0         90000      0      0      0 BMRU
ens9f1     1500        0     0      0 0             0      0      0      0 BM
ib2        2044     7000     0      0 0             7      0      0      0 BMsRU
ib-bond1   4092    14000     0      0 0            16      0      0      0 BMmRU
"""
    assert told(table) == ("ifconfig_short", {
        "ens9f0": ("physical", "UP", None), "ens9f1": ("physical", "DOWN", None), "ib2": ("bond_slave", "UP", None),
        "ib-bond1": ("bond", "UP", None),
    }, "ib-bond1")  # fmt: skip


def test_a_listing_without_addresses_decides_only_where_one_is_the_best() -> None:
    link = (
        "{}: {}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT\n    link/ether 3c:ec::{}\n"
    )
    assert told(link.format(2, "eno1", 1))[2] == "eno1"
    assert told(link.format(2, "eno1", 1) + link.format(3, "eno2", 2))[2] is None


def test_openstack_nics_and_the_details_of_ip() -> None:
    text = """17: qvo7060aaaa-21@qvb7060aaaa-21: <BROADCAST,UP> mtu 1450 qdisc noqueue master ovs-system state UP
19: net2: <BROADCAST,UP> mtu 1450 qdisc noqueue state UP
    link/ether 0a:11:22:33:44:55 brd ff:ff:ff:ff:ff:ff promiscuity 0
    ipvlan  mode l2 bridge addrgenmode eui64
20: mytun: <POINTOPOINT,NOARP,UP> mtu 1480 qdisc noqueue state UNKNOWN
    link/ipip 10.0.0.1 peer 10.0.0.2
"""
    assert {name: cls for name, (cls, _, _) in told(text)[1].items()} == {
        "qvo7060aaaa-21": "container", "net2": "virtual", "mytun": "tunnel",
    }  # fmt: skip
