-- Wireshark's view of what shrimpmx sends: MXoE, the packets of SHRIMP's NIC, and the other
-- protocol that shares the link with MXoE. Use: wireshark -X lua_script:tools/wireshark/shrimpmx.lua

-- Fields in wire order: name:width in bytes; a number alone is padding.
local HEAD = "dst_endpoint:1 src_endpoint:1 src_generation:1 "
local MESSAGE = "lib_seqnum:2 lib_piggyack:2 match_info:8 session:4 "
local NACK = "src_endpoint:1 src_generation:1 nack_type:1 4 "
local FRAGMENT = "frag_length:2 frag_seqnum:1 pipeline:1 checksum:2 2"

-- By packet type: name, native layout, the field with the length of the data behind, and the MX
-- firmware's own layout where it differs.
local TYPES = {
  [1] = {"raw", "1 length:2", "length"},
  [3] = {"host_query", "1 src_dst_peer_index:2 4 magic:4 4"},
  [4] = {"host_reply", "length:1 src_dst_peer_index:2 4 magic:4 4", "length"},
  [35] = {"truc", HEAD .. "length:1 3 session:4 type:1 1 lib_seqnum:2 session_id:4 acknum:4 " ..
    "send_seq:2 resent:1 1"},
  [36] = {"connect", HEAD .. "length:1 3 lib_seqnum:2 src_dst_peer_index:2 4 src_session_id:4 " ..
    "key_or_session:4 target_recv_seqnum_start:2 is_reply:1 connect_seqnum:1 status:1 3"},
  [37] = {"tiny", HEAD .. "length:2 checksum:2 " .. MESSAGE, "length"},
  [38] = {"small", HEAD .. "length:2 checksum:2 " .. MESSAGE, "length"},
  [39] = {"medium_frag", HEAD .. "message_length:4 " .. MESSAGE .. FRAGMENT, "frag_length",
    HEAD .. "message_length:2 2 " .. MESSAGE .. FRAGMENT},
  [40] = {"rndv", HEAD .. "length:2 checksum:2 " .. MESSAGE ..
    "message_length:4 rdma_id:1 rdma_seqnum:1 rdma_offset:2"},
  [41] = {"pull_request", HEAD .. "session:4 total_length:4 rdma_id:4 rdma_seqnum:1 3 " ..
    "rdma_offset:4 src_pull_handle:4 src_magic:4 first_frame_offset:4 block_length:4 frame_index:4",
    nil, HEAD .. "session:4 total_length:4 rdma_id:1 rdma_seqnum:1 rdma_offset:2 " ..
    "src_pull_handle:4 src_magic:4 first_frame_offset:2 block_length:2 frame_index:4"},
  [42] = {"pull_reply", "frame_seqnum:1 frame_length:2 message_offset:4 dst_pull_handle:4 " ..
    "dst_magic:4", "frame_length"},
  [43] = {"notify", HEAD .. "session:4 total_length:4 rdma_id:1 rdma_seqnum:1 4 lib_seqnum:2 " ..
    "lib_piggyack:2 2"},
  [44] = {"nack_lib", NACK .. "1 dst_endpoint:1 dst_src_peer_index:2 lib_seqnum:2 2"},
  [45] = {"nack_mcp", NACK .. "src_pull_handle:4 src_magic:4"},
}
local MARK = 0x80
local NAMES, VMMC_NAMES = {}, {"update", "map request", "letter"}
for number, of in pairs(TYPES) do NAMES[number] = of[1] end

local mxoe = Proto("mxoe", "MXoE")
mxoe.prefs.compatible = Pref.bool("The MX firmware's format", false,
  "Off: Open-MX's native wire format")
local vmmc = Proto("vmmc", "SHRIMP VMMC")
local other = Proto("shrimpmx_other", "The other protocol of shrimpmx")

local MAKE = {[1] = ProtoField.uint8, [2] = ProtoField.uint16, [4] = ProtoField.uint32,
  [8] = ProtoField.uint64}
local fields = {}

-- What a layout says: a list of {full name, width}; no name is padding.
local function parsed(prefix, text)
  local found = {}
  for word in text:gmatch("%S+") do
    local name, width = word:match("^([%w_]+):(%d)$")
    local full = name and prefix .. "." .. name
    table.insert(found, {full, tonumber(width or word)})
    if full and not fields[full] then
      fields[full] = MAKE[tonumber(width)](full, name)
    end
  end
  return found
end

local function add(tree, buffer, offset, layout)
  for _, part in ipairs(layout) do
    if offset + part[2] > buffer:len() then return nil end
    if part[1] then tree:add(fields[part[1]], buffer(offset, part[2])) end
    offset = offset + part[2]
  end
  return offset
end

local peer_index = ProtoField.uint16("mxoe.peer_index", "peer_index")
local ptype = ProtoField.uint8("mxoe.ptype", "ptype", base.DEC, NAMES, 0x7F)
local marked = ProtoField.bool("mxoe.marked", "marked", 8, nil, MARK)
local data = ProtoField.bytes("mxoe.data", "data")
for _, of in pairs(TYPES) do
  of.native, of.other = parsed("mxoe." .. of[1], of[2]), parsed("mxoe." .. of[1], of[4] or of[2])
end
-- A field of two widths is as wide as its wider form.
fields["mxoe.pull_request.rdma_id"] = ProtoField.uint32("mxoe.pull_request.rdma_id", "rdma_id")
mxoe.fields = {peer_index, ptype, marked, data}
for _, field in pairs(fields) do table.insert(mxoe.fields, field) end

function mxoe.dissector(buffer, info, root)
  local of = TYPES[buffer:len() > 2 and buffer(2, 1):uint() % MARK or 0]
  if not of then return 0 end
  local tree = root:add(mxoe, buffer())
  tree:add(peer_index, buffer(0, 2))
  tree:add(ptype, buffer(2, 1))
  tree:add(marked, buffer(2, 1))
  info.cols.protocol = "MXoE"
  info.cols.info = of[1] .. (buffer(2, 1):uint() >= MARK and ", marked" or "")
  local layout = mxoe.prefs.compatible and of.other or of.native
  local offset, length = 3, nil
  for _, part in ipairs(layout) do
    if of[3] and part[1] == "mxoe." .. of[1] .. "." .. of[3] and offset + part[2] <= buffer:len() then
      length = buffer(offset, part[2]):uint()
    end
    offset = offset + part[2]
  end
  local behind = add(tree, buffer, 3, layout)
  if behind and length and length > 0 and behind + length <= buffer:len() then
    tree:add(data, buffer(behind, length))
  end
end

local vmmc_fields = {}
local VMMC = {{"packet", 1}, {"dst_endpoint", 1}, {"src_endpoint", 1}, {"flags", 1}, {"length", 2},
  {"export_index", 2}, {"generation", 4}, {"offset", 8}}
for _, part in ipairs(VMMC) do
  vmmc_fields[part[1]] = MAKE[part[2]]("vmmc." .. part[1], part[1])
  table.insert(vmmc.fields, vmmc_fields[part[1]])
end
local vmmc_data = ProtoField.bytes("vmmc.data", "data")
table.insert(vmmc.fields, vmmc_data)

function vmmc.dissector(buffer, info, root)
  if buffer:len() < 22 or not VMMC_NAMES[buffer(2, 1):uint()] then return 0 end
  local tree, offset = root:add(vmmc, buffer()), 2
  for _, part in ipairs(VMMC) do
    tree:add(vmmc_fields[part[1]], buffer(offset, part[2]))
    offset = offset + part[2]
  end
  local length = buffer(6, 2):uint()
  if length > 0 and offset + length <= buffer:len() then
    tree:add(vmmc_data, buffer(offset, length))
  end
  info.cols.protocol = "VMMC"
  info.cols.info = VMMC_NAMES[buffer(2, 1):uint()]
end

local number = ProtoField.uint32("shrimpmx_other.number", "number")
other.fields = {number}
function other.dissector(buffer, info, root)
  if buffer:len() < 4 then return 0 end
  root:add(other, buffer()):add(number, buffer(0, 4))
  info.cols.protocol = "other"
end

DissectorTable.get("ethertype"):add(0x86DF, mxoe)
DissectorTable.get("ethertype"):add(0x88B5, vmmc)
DissectorTable.get("ip.proto"):add(253, other)
DissectorTable.get("ip.proto"):add(254, other)
