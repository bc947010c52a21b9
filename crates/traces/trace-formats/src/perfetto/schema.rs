//! Required parts of Perfetto's `perfetto_trace.proto`, with its names and numbers.
//!
//! Interned texts are bytes, because not all programs write UTF-8. Lists of numbers are not packed, because Perfetto's
//! trace processor skips packed lists.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TracePacket {
    #[prost(message, optional, tag = "6")]
    pub(crate) clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub(crate) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(crate) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(crate) track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub(crate) interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub(crate) sequence_flags: Option<u32>,
    #[prost(bool, optional, tag = "41")]
    pub(crate) incremental_state_cleared: Option<bool>,
    #[prost(bool, optional, tag = "42")]
    pub(crate) previous_packet_dropped: Option<bool>,
    #[prost(message, optional, tag = "43")]
    pub(crate) process_descriptor: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "44")]
    pub(crate) thread_descriptor: Option<ThreadDescriptor>,
    #[prost(bytes = "vec", optional, tag = "50")]
    pub(crate) compressed_packets: Option<Vec<u8>>,
    #[prost(uint32, optional, tag = "58")]
    pub(crate) timestamp_clock_id: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub(crate) trace_packet_defaults: Option<TracePacketDefaults>,
    #[prost(message, optional, tag = "60")]
    pub(crate) track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackEvent {
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    pub(crate) category_iids: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    pub(crate) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub(crate) name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub(crate) track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    pub(crate) categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    pub(crate) name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    pub(crate) counter_value: Option<i64>,
    #[prost(uint64, repeated, packed = "false", tag = "36")]
    pub(crate) flow_ids_old: Vec<u64>,
    #[prost(uint64, repeated, packed = "false", tag = "42")]
    pub(crate) terminating_flow_ids_old: Vec<u64>,
    #[prost(double, optional, tag = "44")]
    pub(crate) double_counter_value: Option<f64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub(crate) flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub(crate) terminating_flow_ids: Vec<u64>,
}

/// Types of track events.
pub(crate) const SLICE_BEGIN: i32 = 1;
pub(crate) const SLICE_END: i32 = 2;
pub(crate) const INSTANT: i32 = 3;
pub(crate) const COUNTER: i32 = 4;

/// Flags of a packet: the packet invalidates all earlier names of its sequence; the packet uses names.
pub(crate) const NAMES_CLEARED: u32 = 1;
pub(crate) const NAMES_NEEDED: u32 = 2;

/// Numbers of clocks: the wall clock, and the boot clock, which is the default for timestamps.
pub(crate) const REALTIME: u32 = 1;
pub(crate) const BOOTTIME: u32 = 6;

/// First number of clocks that belong to a sequence of packets.
pub(crate) const OWN_CLOCKS: u32 = 64;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) name_iid: Option<u64>,
    #[prost(bool, optional, tag = "2")]
    pub(crate) bool_value: Option<bool>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) uint_value: Option<u64>,
    #[prost(int64, optional, tag = "4")]
    pub(crate) int_value: Option<i64>,
    #[prost(double, optional, tag = "5")]
    pub(crate) double_value: Option<f64>,
    #[prost(string, optional, tag = "6")]
    pub(crate) string_value: Option<String>,
    #[prost(uint64, optional, tag = "7")]
    pub(crate) pointer_value: Option<u64>,
    #[prost(string, optional, tag = "9")]
    pub(crate) legacy_json_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    pub(crate) name: Option<String>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) dict_entries: Vec<DebugAnnotation>,
    #[prost(message, repeated, tag = "12")]
    pub(crate) array_values: Vec<DebugAnnotation>,
    #[prost(uint64, optional, tag = "17")]
    pub(crate) string_value_iid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InternedData {
    #[prost(message, repeated, tag = "1")]
    pub(crate) event_categories: Vec<InternedString>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) event_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) debug_annotation_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "29")]
    pub(crate) debug_annotation_string_values: Vec<InternedString>,
}

/// Common type for several equal messages of the schema.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct InternedString {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) iid: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) text: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(crate) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(crate) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub(crate) counter: Option<CounterDescriptor>,
    #[prost(string, optional, tag = "10")]
    pub(crate) static_name: Option<String>,
    #[prost(int32, optional, tag = "11")]
    pub(crate) child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub(crate) sibling_order_rank: Option<i32>,
}

/// Order of the tracks of a process: by rank.
pub(crate) const EXPLICIT: i32 = 3;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) cmdline: Vec<String>,
    #[prost(string, optional, tag = "6")]
    pub(crate) process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) tid: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub(crate) thread_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CounterDescriptor {
    #[prost(int32, optional, tag = "3")]
    pub(crate) unit: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub(crate) unit_multiplier: Option<i64>,
    #[prost(bool, optional, tag = "5")]
    pub(crate) is_incremental: Option<bool>,
    #[prost(string, optional, tag = "6")]
    pub(crate) unit_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(crate) clocks: Vec<ClockReading>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ClockReading {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) timestamp: Option<u64>,
    #[prost(bool, optional, tag = "3")]
    pub(crate) is_incremental: Option<bool>,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) unit_multiplier_ns: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TracePacketDefaults {
    #[prost(message, optional, tag = "11")]
    pub(crate) track_event_defaults: Option<TrackEventDefaults>,
    #[prost(uint32, optional, tag = "58")]
    pub(crate) timestamp_clock_id: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackEventDefaults {
    #[prost(uint64, optional, tag = "11")]
    pub(crate) track_uuid: Option<u64>,
}
