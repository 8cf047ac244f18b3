"""The words of the counters: complete, one meaning each; and Open-MX's names on their page."""

from __future__ import annotations

import re

import pytest
from support.tree import PACKAGE, ROOT

from shrimpmx.shared.control import AGENT_KINDS, counter_names
from shrimpmx.shared.counter_texts import OF_KIND, TEXTS

PAGE = ROOT / "docs/counters.md"
_NAMES = """
send_tiny send_small send_mediumsq_frag send_mediumva_frag send_rndv send_notify
send_connect_request send_connect_reply send_liback send_nack_lib send_nack_mcp
send_pull_request send_pull_reply send_raw send_host_query send_host_reply
recv_tiny recv_small recv_medium_frag recv_rndv recv_notify recv_connect_request
recv_connect_reply recv_liback recv_nack_lib recv_nack_mcp recv_pull_request
recv_pull_reply recv_raw recv_host_query recv_host_reply
dmarecv_medium_frag dmarecv_pull_reply recv_nonlinear_header
exp_eventq_full unexp_eventq_full send_nomem_* mediumsq_frag_send_linear
pull_nonfirst_block_done_early pull_request_notonlyfirst_blocks
pull_timeout_handler_first_block pull_timeout_handler_nonfirst_block pull_timeout_abort
pull_reply_send_linear pull_reply_fill_failed shared_*
drop_bad_header_datalen drop_bad_datalen drop_bad_skblen drop_bad_peer_addr
drop_bad_peer_index drop_bad_endpoint drop_bad_session drop_pull_bad_replies
drop_pull_bad_region drop_pull_bad_offset_length drop_pull_reply_bad_magic_endpoint
drop_pull_reply_bad_wire_handle drop_pull_reply_bad_seqnum_wraparound
drop_pull_reply_bad_seqnum drop_pull_reply_duplicate drop_nack_mcp_bad_magic_endpoint
drop_nack_mcp_bad_wire_handle drop_host_reply_bad_magic drop_raw_queue_full
drop_raw_too_large drop_nosys_type drop_invalid_type drop_unknown_type
"""
OPEN_MX = _NAMES.split()


@pytest.mark.parametrize("kind", AGENT_KINDS)
def test_every_counter_has_its_text_in_its_order(kind: str) -> None:
    assert list(OF_KIND[kind]) == counter_names(kind)


def test_texts_are_sentences_that_tell_counters_apart() -> None:
    assert all(re.fullmatch(r"[A-Z].*\.", text) for text in TEXTS.values())
    assert len(set(TEXTS.values())) == len(TEXTS)


def test_each_name_of_open_mx_is_ours_or_the_page_says_why_not() -> None:
    mapping = dict(re.findall(r"^\| `([A-Z_*]+)` \| (.+) \|$", PAGE.read_text(), re.M))
    assert set(mapping) == {name.upper() for name in OPEN_MX if name not in TEXTS}
    for name, ours in mapping.items():
        named = re.findall(r"`(\w+)`", ours)
        assert set(named) <= set(TEXTS), name
        assert named or ours.startswith("none: "), name


def test_every_counter_is_counted_somewhere() -> None:
    """A counter that no code names would stay zero for ever."""
    code = [path for path in PACKAGE.rglob("*.p[yx][xd]") if path.name != "layout.pxd"]
    named = set(re.findall(r"COUNTER_(\w+)", "".join(path.read_text() for path in code)))
    # Python code counts through a Tally, by name.
    python = "".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    named |= set(re.findall(r'Tally\([^)]*"(\w+)"\)', python))
    # The causes of an interrupt follow each other in their order.
    causes = {f"irq_raised_{word}" for word in ("marked", "deferred", "timeout", "frames", "sent")}
    assert set(TEXTS) - named - causes == set()
