"""How the SQL back ends keep facts, contents and control: compressed where that makes them smaller.

What is kept tells by its first byte whether it is packed, so plain bytes of any kind are read as they are. The words
that facts and control are made of stand in a dictionary, without which values so small would hardly shrink; a text has
other words, and to look them up there would cost it a third of its time. Both are unpacked alike. What comes out is
what went in, to the byte: digests cover the plain bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import zstandard

_MARK: Final = b"\x01"
"""First byte of what is packed, and unpacked with the dictionary below. Another dictionary would take another mark."""

_WORDS_LEVEL: Final = 1
"""At a lower one facts are two bytes longer of seventy: with that, rows of PostgreSQL take 8 bytes more each, for they
are aligned, and a chat of 2,000 messages 3 % more."""
_TEXT_LEVEL: Final = 3

# Frozen: what databases hold was packed with it. What is common stands at the end, where references are short.
_DICTIONARY: Final = (
    b'"attempt_started_at":179,"retry":{"attempt":,"delay_us":,"not_before":,"kind":"","provider":""},"error":{"kind":"'
    b'","message":[0,],"retryable":true},"queue":[{"id":".0","model":""}],"calls":[{"id":".0.0","name":"","runner":'
    b'"client","approval":true,"exclusive":true,"stop_after":true,"crash":"report","started":true,"recorded":true}],'
    b'"action":{"id":,"deadline":179,"on_expiry":"end_turn"},"holder":"","running":{"attempt":,"kind":"tools",'
    b'"started_at":179},"takeovers":,"owed":true,"interrupted":true,"model":{"provider":"","name":"","effort":""},'
    b'"limits":{"context":200000,"output":},"prices":{"input":,"output":},"max_steps":1200,"tools":[{"name":"","schema":'
    b'""}],"system":"","action_timeout_us":300000000,"removed":".0","cause":"interrupt","promoted":[".0"],"finish_reason":'
    b'"length","usage":{"input":,"output":,"cache_read":,"cache_write":,"reasoning":},"kind":"reasoning","visibility":'
    b'"model","marked":"interrupted","title":[0,],"labels":{"":""},'
    b'{"chat":"","owner":"","agent":"","release":"0.1.0","version":,"history_version":,"queue_version":,"created_at":179,'
    b'"recorded_at":179,"updated_at":179,"epoch":,"holder":"","usage":{"input":,"output":},"turns":,"policy":"",'
    b'"running":{"attempt":,"kind":"generate","started_at":179},"attempt":,"indexes":{"messages":,"turn_start":".0",'
    b'"steps":,"last_role":"assistant","visible_after":,"assistants_after":,"context_tokens":,"first_context_tokens":}}'
    b'{"chat":"","owner":"","agent":"","release":"0.1.0"}{"worker":"","epoch":,"release":"0.1.0"}'
    b'{"digest":"","policy":{"agent":"","revision":"","model":{"provider":"","name":""}'
    b'{"answers":[{"call":".0.0"}],"attempt":1}'
    b'{"attempt":1,"result":{"kind":"tool_result","call":".0.0","output":[0,1],"started_at":179,"ended_at":179}}'
    b'{"added":[{"role":"user","parts":[{"kind":"text","text":[0,1]}]}]}'
    b'{"attempt":1,"kind":"tools","decision":{"rule":"D1","action":"run_tools","facts":{"local":1,"recorded":0},'
    b'"passed":["D0"],"policy":""},"calls":[".0.0"]}'
    b'{"cause":"complete","decision":{"rule":"D6","action":"finish(complete)","facts":{"last":"assistant"},'
    b'"passed":["D0","D1","D2","D2b","D3","D4","D5"],"policy":""}}'
    b'{"attempt":1,"kind":"generate","decision":{"rule":"D11","action":"generate","facts":{"attempt":1},"passed":["D0",'
    b'"D1","D2","D2b","D3","D4","D5","D6","D7","D7b","D8","D9","D10"],"policy":""}}'
    b'{"added":[{"role":"assistant","parts":[{"kind":"text","text":[0,1]},{"kind":"tool_call","name":"","arguments":[0,1],'
    b'"provider_call_id":"call_","runner":"local"}],"step":{"provider":"","model":"","finish_reason":"tool_calls",'
    b'"usage":{"input":1,"output":1},"finish_reason":"stop","usage":{"input":1,"output":1},"started_at":179,'
    b'"first_part_at":179,"ended_at":179}}],"attempt":1,"report":{"request":{"system":"","tools":"","messages":"",'
    b'"options":""}}}'
)


_FORM: Final = zstandard.FORMAT_ZSTD1_MAGICLESS


def _compressor(level: int, words: zstandard.ZstdCompressionDict | None) -> Callable[[bytes], bytes]:
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level, format=_FORM, write_content_size=True, write_checksum=False, write_dict_id=False
    )
    if words is not None:
        words.precompute_compress(compression_params=parameters)
    return zstandard.ZstdCompressor(dict_data=words, compression_params=parameters).compress


class _Codec(threading.local):
    """Compressors and a decompressor for each thread: none may be used by two at once."""

    def __init__(self) -> None:
        words = zstandard.ZstdCompressionDict(_DICTIONARY, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        self.compress = _compressor(_WORDS_LEVEL, words)
        self.compress_text = _compressor(_TEXT_LEVEL, None)
        self.decompress = zstandard.ZstdDecompressor(dict_data=words, format=_FORM).decompress


_codec: Final = _Codec()


class CannotUnpack(ValueError):
    """What was kept is marked as packed, and is not."""


def pack(data: bytes, least: int, *, text: bool = False) -> bytes:
    """Return bytes as they are to be kept: packed if there are ``least`` and they get fewer.

    ``text``: they are a content, not facts or control.
    """
    marked = data[:1] == _MARK
    if len(data) < least and not marked:
        return data
    packed = _MARK + (_codec.compress_text(data) if text else _codec.compress(data))
    return packed if marked or len(packed) < len(data) else data


def unpack(data: bytes) -> bytes:
    """Return what was packed.

    Raises:
        CannotUnpack: It was packed and then changed.
    """
    if data[:1] != _MARK:
        return data
    try:
        return _codec.decompress(data[1:])
    except zstandard.ZstdError as error:
        raise CannotUnpack(str(error)) from None
