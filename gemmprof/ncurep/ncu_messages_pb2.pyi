# Written by tools/build_messages.py from ncu_messages.proto.
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FileHeader(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class BlockHeader(_message.Message):
    __slots__ = ("sources", "kernels", "session", "strings", "payload_size", "process", "ranges", "command_lists", "graphs", "graph_structures")
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    KERNELS_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_SIZE_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    COMMAND_LISTS_FIELD_NUMBER: _ClassVar[int]
    GRAPHS_FIELD_NUMBER: _ClassVar[int]
    GRAPH_STRUCTURES_FIELD_NUMBER: _ClassVar[int]
    sources: int
    kernels: int
    session: bytes
    strings: StringTable
    payload_size: int
    process: Process
    ranges: int
    command_lists: int
    graphs: int
    graph_structures: int
    def __init__(self, sources: _Optional[int] = ..., kernels: _Optional[int] = ..., session: _Optional[bytes] = ..., strings: _Optional[_Union[StringTable, _Mapping]] = ..., payload_size: _Optional[int] = ..., process: _Optional[_Union[Process, _Mapping]] = ..., ranges: _Optional[int] = ..., command_lists: _Optional[int] = ..., graphs: _Optional[int] = ..., graph_structures: _Optional[int] = ...) -> None: ...

class StringTable(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class Process(_message.Message):
    __slots__ = ("id", "host", "name")
    ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    id: int
    host: str
    name: str
    def __init__(self, id: _Optional[int] = ..., host: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class KernelResult(_message.Message):
    __slots__ = ("thread", "call", "mangled_name", "function_name", "demangled_name", "grid", "block", "metrics", "created", "source", "rules", "nvtx", "context", "stream", "renamed")
    THREAD_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    MANGLED_NAME_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_NAME_FIELD_NUMBER: _ClassVar[int]
    DEMANGLED_NAME_FIELD_NUMBER: _ClassVar[int]
    GRID_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    NVTX_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    RENAMED_FIELD_NUMBER: _ClassVar[int]
    thread: int
    call: int
    mangled_name: str
    function_name: str
    demangled_name: str
    grid: Dimensions
    block: Dimensions
    metrics: _containers.RepeatedScalarFieldContainer[bytes]
    created: int
    source: SourceReference
    rules: _containers.RepeatedScalarFieldContainer[bytes]
    nvtx: bytes
    context: int
    stream: int
    renamed: str
    def __init__(self, thread: _Optional[int] = ..., call: _Optional[int] = ..., mangled_name: _Optional[str] = ..., function_name: _Optional[str] = ..., demangled_name: _Optional[str] = ..., grid: _Optional[_Union[Dimensions, _Mapping]] = ..., block: _Optional[_Union[Dimensions, _Mapping]] = ..., metrics: _Optional[_Iterable[bytes]] = ..., created: _Optional[int] = ..., source: _Optional[_Union[SourceReference, _Mapping]] = ..., rules: _Optional[_Iterable[bytes]] = ..., nvtx: _Optional[bytes] = ..., context: _Optional[int] = ..., stream: _Optional[int] = ..., renamed: _Optional[str] = ...) -> None: ...

class RangeResult(_message.Message):
    __slots__ = ("thread", "call", "metrics", "nvtx", "context", "rules")
    THREAD_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    NVTX_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    thread: int
    call: int
    metrics: _containers.RepeatedScalarFieldContainer[bytes]
    nvtx: bytes
    context: int
    rules: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, thread: _Optional[int] = ..., call: _Optional[int] = ..., metrics: _Optional[_Iterable[bytes]] = ..., nvtx: _Optional[bytes] = ..., context: _Optional[int] = ..., rules: _Optional[_Iterable[bytes]] = ...) -> None: ...

class CommandListResult(_message.Message):
    __slots__ = ("thread", "call", "metrics", "nvtx", "context", "stream", "display_name", "rules")
    THREAD_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    NVTX_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    thread: int
    call: int
    metrics: _containers.RepeatedScalarFieldContainer[bytes]
    nvtx: bytes
    context: int
    stream: int
    display_name: str
    rules: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, thread: _Optional[int] = ..., call: _Optional[int] = ..., metrics: _Optional[_Iterable[bytes]] = ..., nvtx: _Optional[bytes] = ..., context: _Optional[int] = ..., stream: _Optional[int] = ..., display_name: _Optional[str] = ..., rules: _Optional[_Iterable[bytes]] = ...) -> None: ...

class GraphResult(_message.Message):
    __slots__ = ("thread", "call", "metrics", "nvtx", "context", "stream", "rules")
    THREAD_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    NVTX_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    thread: int
    call: int
    metrics: _containers.RepeatedScalarFieldContainer[bytes]
    nvtx: bytes
    context: int
    stream: int
    rules: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, thread: _Optional[int] = ..., call: _Optional[int] = ..., metrics: _Optional[_Iterable[bytes]] = ..., nvtx: _Optional[bytes] = ..., context: _Optional[int] = ..., stream: _Optional[int] = ..., rules: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Dimensions(_message.Message):
    __slots__ = ("x", "y", "z")
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    Z_FIELD_NUMBER: _ClassVar[int]
    x: int
    y: int
    z: int
    def __init__(self, x: _Optional[int] = ..., y: _Optional[int] = ..., z: _Optional[int] = ...) -> None: ...

class SourceReference(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    def __init__(self, id: _Optional[int] = ...) -> None: ...

class KernelIdentity(_message.Message):
    __slots__ = ("thread", "call", "first_pointer", "second_pointer", "mangled_name", "function_name", "demangled_name", "api", "grid_offset", "grid", "block", "metrics", "created", "source", "source_flag", "context", "stream")
    THREAD_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    FIRST_POINTER_FIELD_NUMBER: _ClassVar[int]
    SECOND_POINTER_FIELD_NUMBER: _ClassVar[int]
    MANGLED_NAME_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_NAME_FIELD_NUMBER: _ClassVar[int]
    DEMANGLED_NAME_FIELD_NUMBER: _ClassVar[int]
    API_FIELD_NUMBER: _ClassVar[int]
    GRID_OFFSET_FIELD_NUMBER: _ClassVar[int]
    GRID_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FLAG_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    thread: int
    call: int
    first_pointer: int
    second_pointer: int
    mangled_name: bytes
    function_name: bytes
    demangled_name: bytes
    api: int
    grid_offset: bytes
    grid: bytes
    block: bytes
    metrics: _containers.RepeatedScalarFieldContainer[bytes]
    created: int
    source: bytes
    source_flag: int
    context: int
    stream: int
    def __init__(self, thread: _Optional[int] = ..., call: _Optional[int] = ..., first_pointer: _Optional[int] = ..., second_pointer: _Optional[int] = ..., mangled_name: _Optional[bytes] = ..., function_name: _Optional[bytes] = ..., demangled_name: _Optional[bytes] = ..., api: _Optional[int] = ..., grid_offset: _Optional[bytes] = ..., grid: _Optional[bytes] = ..., block: _Optional[bytes] = ..., metrics: _Optional[_Iterable[bytes]] = ..., created: _Optional[int] = ..., source: _Optional[bytes] = ..., source_flag: _Optional[int] = ..., context: _Optional[int] = ..., stream: _Optional[int] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("text", "single", "real", "small", "whole")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SINGLE_FIELD_NUMBER: _ClassVar[int]
    REAL_FIELD_NUMBER: _ClassVar[int]
    SMALL_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    text: str
    single: float
    real: float
    small: int
    whole: int
    def __init__(self, text: _Optional[str] = ..., single: _Optional[float] = ..., real: _Optional[float] = ..., small: _Optional[int] = ..., whole: _Optional[int] = ...) -> None: ...

class Metric(_message.Message):
    __slots__ = ("name", "value", "elements", "keyed_by")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    KEYED_BY_FIELD_NUMBER: _ClassVar[int]
    name: int
    value: Value
    elements: ElementColumns
    keyed_by: int
    def __init__(self, name: _Optional[int] = ..., value: _Optional[_Union[Value, _Mapping]] = ..., elements: _Optional[_Union[ElementColumns, _Mapping]] = ..., keyed_by: _Optional[int] = ...) -> None: ...

class ElementColumns(_message.Message):
    __slots__ = ("keys", "values")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    keys: Column
    values: Column
    def __init__(self, keys: _Optional[_Union[Column, _Mapping]] = ..., values: _Optional[_Union[Column, _Mapping]] = ...) -> None: ...

class Column(_message.Message):
    __slots__ = ("text", "single", "real", "small", "whole")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SINGLE_FIELD_NUMBER: _ClassVar[int]
    REAL_FIELD_NUMBER: _ClassVar[int]
    SMALL_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    text: _containers.RepeatedScalarFieldContainer[str]
    single: _containers.RepeatedScalarFieldContainer[float]
    real: _containers.RepeatedScalarFieldContainer[float]
    small: _containers.RepeatedScalarFieldContainer[int]
    whole: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, text: _Optional[_Iterable[str]] = ..., single: _Optional[_Iterable[float]] = ..., real: _Optional[_Iterable[float]] = ..., small: _Optional[_Iterable[int]] = ..., whole: _Optional[_Iterable[int]] = ...) -> None: ...

class MetricElements(_message.Message):
    __slots__ = ("elements",)
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    elements: _containers.RepeatedCompositeFieldContainer[Element]
    def __init__(self, elements: _Optional[_Iterable[_Union[Element, _Mapping]]] = ...) -> None: ...

class Element(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: Value
    value: Value
    def __init__(self, key: _Optional[_Union[Value, _Mapping]] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...

class Rule(_message.Message):
    __slots__ = ("name", "bodies", "section")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BODIES_FIELD_NUMBER: _ClassVar[int]
    SECTION_FIELD_NUMBER: _ClassVar[int]
    name: str
    bodies: _containers.RepeatedCompositeFieldContainer[RuleBody]
    section: str
    def __init__(self, name: _Optional[str] = ..., bodies: _Optional[_Iterable[_Union[RuleBody, _Mapping]]] = ..., section: _Optional[str] = ...) -> None: ...

class RuleBody(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[RuleItem]
    def __init__(self, items: _Optional[_Iterable[_Union[RuleItem, _Mapping]]] = ...) -> None: ...

class RuleItem(_message.Message):
    __slots__ = ("message", "focus", "speedup", "tables")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FOCUS_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    message: RuleMessage
    focus: _containers.RepeatedCompositeFieldContainer[FocusMetric]
    speedup: Speedup
    tables: _containers.RepeatedCompositeFieldContainer[RuleTable]
    def __init__(self, message: _Optional[_Union[RuleMessage, _Mapping]] = ..., focus: _Optional[_Iterable[_Union[FocusMetric, _Mapping]]] = ..., speedup: _Optional[_Union[Speedup, _Mapping]] = ..., tables: _Optional[_Iterable[_Union[RuleTable, _Mapping]]] = ...) -> None: ...

class RuleMessage(_message.Message):
    __slots__ = ("text", "severity", "title")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    text: str
    severity: int
    title: str
    def __init__(self, text: _Optional[str] = ..., severity: _Optional[int] = ..., title: _Optional[str] = ...) -> None: ...

class FocusMetric(_message.Message):
    __slots__ = ("name", "value", "severity", "info")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    severity: int
    info: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ..., severity: _Optional[int] = ..., info: _Optional[str] = ...) -> None: ...

class Speedup(_message.Message):
    __slots__ = ("scope", "percent")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    PERCENT_FIELD_NUMBER: _ClassVar[int]
    scope: int
    percent: float
    def __init__(self, scope: _Optional[int] = ..., percent: _Optional[float] = ...) -> None: ...

class RuleTable(_message.Message):
    __slots__ = ("head", "columns")
    HEAD_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    head: RuleTableHead
    columns: _containers.RepeatedCompositeFieldContainer[RuleTableColumn]
    def __init__(self, head: _Optional[_Union[RuleTableHead, _Mapping]] = ..., columns: _Optional[_Iterable[_Union[RuleTableColumn, _Mapping]]] = ...) -> None: ...

class RuleTableHead(_message.Message):
    __slots__ = ("title", "description")
    TITLE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    title: str
    description: str
    def __init__(self, title: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...

class RuleTableColumn(_message.Message):
    __slots__ = ("headers", "texts", "reals", "wholes")
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    REALS_FIELD_NUMBER: _ClassVar[int]
    WHOLES_FIELD_NUMBER: _ClassVar[int]
    headers: _containers.RepeatedScalarFieldContainer[str]
    texts: _containers.RepeatedScalarFieldContainer[str]
    reals: _containers.RepeatedScalarFieldContainer[float]
    wholes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, headers: _Optional[_Iterable[str]] = ..., texts: _Optional[_Iterable[str]] = ..., reals: _Optional[_Iterable[float]] = ..., wholes: _Optional[_Iterable[int]] = ...) -> None: ...

class NvtxState(_message.Message):
    __slots__ = ("domains", "threads", "started")
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    domains: _containers.RepeatedCompositeFieldContainer[NvtxDomain]
    threads: _containers.RepeatedCompositeFieldContainer[NvtxThread]
    started: _containers.RepeatedCompositeFieldContainer[NvtxStarted]
    def __init__(self, domains: _Optional[_Iterable[_Union[NvtxDomain, _Mapping]]] = ..., threads: _Optional[_Iterable[_Union[NvtxThread, _Mapping]]] = ..., started: _Optional[_Iterable[_Union[NvtxStarted, _Mapping]]] = ...) -> None: ...

class NvtxDomain(_message.Message):
    __slots__ = ("id", "strings")
    ID_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    id: int
    strings: _containers.RepeatedCompositeFieldContainer[NvtxString]
    def __init__(self, id: _Optional[int] = ..., strings: _Optional[_Iterable[_Union[NvtxString, _Mapping]]] = ...) -> None: ...

class NvtxString(_message.Message):
    __slots__ = ("handle", "text")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    handle: int
    text: str
    def __init__(self, handle: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class NvtxThread(_message.Message):
    __slots__ = ("id", "domains")
    ID_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    id: int
    domains: _containers.RepeatedCompositeFieldContainer[NvtxPushed]
    def __init__(self, id: _Optional[int] = ..., domains: _Optional[_Iterable[_Union[NvtxPushed, _Mapping]]] = ...) -> None: ...

class NvtxPushed(_message.Message):
    __slots__ = ("domain", "ranges")
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    domain: int
    ranges: _containers.RepeatedCompositeFieldContainer[PushedRange]
    def __init__(self, domain: _Optional[int] = ..., ranges: _Optional[_Iterable[_Union[PushedRange, _Mapping]]] = ...) -> None: ...

class PushedRange(_message.Message):
    __slots__ = ("name", "attributes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    attributes: NvtxAttributes
    def __init__(self, name: _Optional[str] = ..., attributes: _Optional[_Union[NvtxAttributes, _Mapping]] = ...) -> None: ...

class NvtxStarted(_message.Message):
    __slots__ = ("domain", "ranges")
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    domain: int
    ranges: _containers.RepeatedCompositeFieldContainer[StartedRange]
    def __init__(self, domain: _Optional[int] = ..., ranges: _Optional[_Iterable[_Union[StartedRange, _Mapping]]] = ...) -> None: ...

class StartedRange(_message.Message):
    __slots__ = ("name", "attributes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    attributes: NvtxAttributes
    def __init__(self, name: _Optional[str] = ..., attributes: _Optional[_Union[NvtxAttributes, _Mapping]] = ...) -> None: ...

class NvtxAttributes(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: NvtxMessage
    def __init__(self, message: _Optional[_Union[NvtxMessage, _Mapping]] = ...) -> None: ...

class NvtxMessage(_message.Message):
    __slots__ = ("text", "handle")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    text: str
    handle: int
    def __init__(self, text: _Optional[str] = ..., handle: _Optional[int] = ...) -> None: ...

class Session(_message.Message):
    __slots__ = ("created", "machine", "devices", "versions", "applications", "settings", "command_line")
    CREATED_FIELD_NUMBER: _ClassVar[int]
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    COMMAND_LINE_FIELD_NUMBER: _ClassVar[int]
    created: int
    machine: bytes
    devices: _containers.RepeatedCompositeFieldContainer[SessionDevice]
    versions: _containers.RepeatedCompositeFieldContainer[Version]
    applications: _containers.RepeatedCompositeFieldContainer[Application]
    settings: _containers.RepeatedCompositeFieldContainer[Settings]
    command_line: str
    def __init__(self, created: _Optional[int] = ..., machine: _Optional[bytes] = ..., devices: _Optional[_Iterable[_Union[SessionDevice, _Mapping]]] = ..., versions: _Optional[_Iterable[_Union[Version, _Mapping]]] = ..., applications: _Optional[_Iterable[_Union[Application, _Mapping]]] = ..., settings: _Optional[_Iterable[_Union[Settings, _Mapping]]] = ..., command_line: _Optional[str] = ...) -> None: ...

class SessionDevice(_message.Message):
    __slots__ = ("display_name", "attributes")
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    display_name: str
    attributes: _containers.RepeatedCompositeFieldContainer[DeviceAttribute]
    def __init__(self, display_name: _Optional[str] = ..., attributes: _Optional[_Iterable[_Union[DeviceAttribute, _Mapping]]] = ...) -> None: ...

class DeviceAttribute(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: Value
    def __init__(self, name: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...

class Version(_message.Message):
    __slots__ = ("provider", "version")
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    provider: str
    version: str
    def __init__(self, provider: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class Application(_message.Message):
    __slots__ = ("executable", "arguments")
    EXECUTABLE_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    executable: str
    arguments: str
    def __init__(self, executable: _Optional[str] = ..., arguments: _Optional[str] = ...) -> None: ...

class Settings(_message.Message):
    __slots__ = ("sections", "clock_control", "replay_mode")
    SECTIONS_FIELD_NUMBER: _ClassVar[int]
    CLOCK_CONTROL_FIELD_NUMBER: _ClassVar[int]
    REPLAY_MODE_FIELD_NUMBER: _ClassVar[int]
    sections: str
    clock_control: str
    replay_mode: str
    def __init__(self, sections: _Optional[str] = ..., clock_control: _Optional[str] = ..., replay_mode: _Optional[str] = ...) -> None: ...

class SourceData(_message.Message):
    __slots__ = ("reference", "cubin", "files")
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    CUBIN_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    reference: int
    cubin: bytes
    files: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, reference: _Optional[int] = ..., cubin: _Optional[bytes] = ..., files: _Optional[_Iterable[bytes]] = ...) -> None: ...

class SourceFiles(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[SourceFile]
    def __init__(self, entries: _Optional[_Iterable[_Union[SourceFile, _Mapping]]] = ...) -> None: ...

class SourceFile(_message.Message):
    __slots__ = ("path", "content")
    PATH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    path: str
    content: bytes
    def __init__(self, path: _Optional[str] = ..., content: _Optional[bytes] = ...) -> None: ...
