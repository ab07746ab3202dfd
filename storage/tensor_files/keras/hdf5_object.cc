#include "storage/tensor_files/keras/hdf5_object.h"

#include <deque>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Kinds of messages (HDF5 File Format Specification 3.0, IV.A.2).
enum MessageKind : uint64_t {
  kDataspace = 0x01,
  kLinkInfo = 0x02,
  kDatatype = 0x03,
  kLink = 0x06,
  kExternalFiles = 0x07,
  kLayout = 0x08,
  kAttribute = 0x0C,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
  kAttributeInfo = 0x15,
};

constexpr uint64_t kSharedFlag = 2;
constexpr size_t kMaxAxes = 32;
constexpr size_t kMaxNameBytes = 1024;
constexpr char kWriteAgain[] =
    "save the model again, with Keras's model.save(PATH)";

struct Message {
  uint64_t kind = 0;
  bool is_shared = false;
  uint64_t address = 0;  // of its first byte
  std::string bytes = {};
};

// A part of a header: messages, one behind the other.
struct Block {
  uint64_t address = 0;
  uint64_t bytes = 0;
};

// Reads the messages of a header, block by block.
class MessageReader {
 public:
  explicit MessageReader(Hdf5Bytes& file) : file_(file) {}

  absl::StatusOr<std::vector<Message>> Read(uint64_t address) {
    ASSIGN_OR_RETURN(const std::string start, file_.Read(address, 8));
    is_new_ = start.substr(0, 4) == "OHDR";
    RETURN_IF_ERROR(is_new_ ? StartNew(address, start)
                            : StartOld(address, start));
    while (!blocks_.empty()) {
      const Block block = blocks_.front();
      blocks_.pop_front();
      RETURN_IF_ERROR(ReadBlock(block));
    }
    return std::move(messages_);
  }

 private:
  absl::Status StartOld(uint64_t address, const std::string& start) {
    ASSIGN_OR_RETURN(const std::string sizes, file_.Read(address + 8, 8));
    Hdf5Fields fields(start);
    if (fields.Number(1) != 1) {
      return DamagedHdf5(address, "no object's header is here");
    }
    blocks_.push_back({address + 16, Hdf5Fields(sizes).Number(4)});
    return absl::OkStatus();
  }

  absl::Status StartNew(uint64_t address, const std::string& start) {
    Hdf5Fields fields(start);
    fields.Skip(4);
    if (fields.Number(1) != 2) {
      return DamagedHdf5(address, "a header of a version that is not known");
    }
    const uint64_t flags = fields.Number(1);
    has_order_ = (flags & 4) != 0;
    const uint64_t sizes = address + 6 + ((flags & 0x20) != 0 ? 16 : 0) +
                           ((flags & 0x10) != 0 ? 4 : 0);
    const uint64_t size_bytes = uint64_t{1} << (flags & 3);
    ASSIGN_OR_RETURN(const std::string size, file_.Read(sizes, size_bytes));
    blocks_.push_back(
        {sizes + size_bytes, Hdf5Fields(size).Number(size_bytes)});
    return absl::OkStatus();
  }

  absl::Status ReadBlock(const Block& block) {
    ASSIGN_OR_RETURN(const std::string bytes,
                     file_.Read(block.address, block.bytes));
    Hdf5Fields fields(bytes);
    const size_t prefix = is_new_ ? (has_order_ ? 6 : 4) : 8;
    // What is left behind the last one is a gap.
    while (fields.left() >= prefix) {
      RETURN_IF_ERROR(ReadMessage(block.address, fields));
    }
    return absl::OkStatus();
  }

  absl::Status ReadMessage(uint64_t block, Hdf5Fields& fields) {
    const uint64_t begin = block + fields.place();
    Message message;
    message.kind = fields.Number(is_new_ ? 1 : 2);
    const uint64_t size = fields.Number(2);
    message.is_shared = (fields.Number(1) & kSharedFlag) != 0;
    fields.Skip(is_new_ ? (has_order_ ? 2 : 0) : 3);
    message.address = block + fields.place();
    message.bytes = std::string(fields.Text(size));
    if (!fields.ok()) {
      return DamagedHdf5(begin, "a message is longer than its header");
    }
    if (message.kind == kContinuation) return Continue(message);
    messages_.push_back(std::move(message));
    return absl::OkStatus();
  }

  absl::Status Continue(const Message& message) {
    Hdf5Fields fields(message.bytes);
    Block next = {fields.Number(8), fields.Number(8)};
    if (is_new_) {
      // A signature is in front, a checksum behind.
      if (next.bytes < 8) {
        return DamagedHdf5(message.address, "a header goes on in no bytes");
      }
      ASSIGN_OR_RETURN(const std::string name, file_.Read(next.address, 4));
      if (name != "OCHK") {
        return DamagedHdf5(next.address, "no part of a header is here");
      }
      next = {next.address + 4, next.bytes - 8};
    }
    if (!fields.ok()) {
      return DamagedHdf5(message.address, "a header's message is too short");
    }
    blocks_.push_back(next);
    return absl::OkStatus();
  }

  Hdf5Bytes& file_;
  bool is_new_ = false;
  bool has_order_ = false;  // each message with a number of its own
  std::deque<Block> blocks_;
  std::vector<Message> messages_;
};

// "float32" of the fields of a datatype that follow its size; "" if it is none
// that is known.
std::string NameOfFloat(uint64_t bytes, Hdf5Fields& fields) {
  const uint64_t offset = fields.Number(2);
  const uint64_t precision = fields.Number(2);
  fields.Skip(1);
  const uint64_t exponent = fields.Number(1);
  fields.Skip(1);
  const uint64_t fraction = fields.Number(1);
  if (offset != 0 || precision != 8 * bytes) return "";
  if (bytes == 2 && exponent == 5 && fraction == 10) return "float16";
  if (bytes == 2 && exponent == 8 && fraction == 7) return "bfloat16";
  if (bytes == 4 && exponent == 8 && fraction == 23) return "float32";
  if (bytes == 8 && exponent == 11 && fraction == 52) return "float64";
  return "";
}

std::string NameOfInteger(uint64_t bytes, bool is_signed, Hdf5Fields& fields) {
  const uint64_t offset = fields.Number(2);
  const uint64_t precision = fields.Number(2);
  if (offset != 0 || precision != 8 * bytes) return "";
  return absl::StrCat(is_signed ? "int" : "uint", precision);
}

// Types that are not known are kOther: who needs them says so.
Hdf5Type ParseType(absl::string_view bytes) {
  Hdf5Fields fields(bytes);
  const uint64_t kind = fields.Number(1) & 0xF;
  const uint64_t bits = fields.Number(3);
  Hdf5Type type = {.bytes = fields.Number(4)};
  const bool is_little_endian = (bits & 0x41) == 0;
  if (kind == 0 && is_little_endian) {
    type.name = NameOfInteger(type.bytes, (bits & 8) != 0, fields);
  } else if (kind == 1 && is_little_endian) {
    type.name = NameOfFloat(type.bytes, fields);
  } else if (kind == 3) {
    type.kind = Hdf5Type::Kind::kText;
  } else if (kind == 5) {
    type.kind = Hdf5Type::Kind::kOpaque;
  } else if (kind == 9 && (bits & 0xF) == 1) {
    type.kind = Hdf5Type::Kind::kTextElsewhere;
  }
  if (!fields.ok()) return {};
  if (!type.name.empty()) type.kind = Hdf5Type::Kind::kNumber;
  return type;
}

// Parses the message of that address.
absl::StatusOr<std::vector<int64_t>> ParseShape(absl::string_view bytes,
                                                uint64_t address) {
  Hdf5Fields fields(bytes);
  const uint64_t version = fields.Number(1);
  const uint64_t axes = fields.Number(1);
  fields.Skip(1);
  const bool is_null = version == 2 && fields.Number(1) == 2;
  if (version == 1) fields.Skip(5);
  std::vector<int64_t> shape;
  for (uint64_t i = 0; i < axes && i < kMaxAxes; ++i) {
    shape.push_back(static_cast<int64_t>(fields.Number(8)));
    if (shape.back() < 0) {
      return DamagedHdf5(address, "an array's axis has no length");
    }
  }
  if (!fields.ok() || version < 1 || version > 2 || axes > kMaxAxes) {
    return DamagedHdf5(address, "an array's shape is damaged");
  }
  if (is_null) shape = {0};
  return shape;
}

Hdf5Attribute ParseAttribute(absl::string_view bytes) {
  Hdf5Fields fields(bytes);
  const uint64_t version = fields.Number(1);
  const bool is_shared = fields.Number(1) != 0 && version > 1;
  const size_t name_bytes = fields.Number(2);
  const size_t type_bytes = fields.Number(2);
  const size_t space_bytes = fields.Number(2);
  if (version == 3) fields.Skip(1);
  const auto part = [&](size_t part_bytes) {
    const absl::string_view text = fields.Text(part_bytes);
    if (version == 1) fields.Align();
    return text;
  };
  const absl::string_view name = part(name_bytes);
  const absl::string_view type = part(type_bytes);
  const auto shape = ParseShape(part(space_bytes), 0);
  if (!fields.ok() || is_shared || !shape.ok()) return {};
  return {.name = std::string(name.substr(0, name.find('\0'))),
          .type = ParseType(type),
          .is_scalar = shape->empty(),
          .value = std::string(fields.Text(fields.left()))};
}

// Adds what messages say to an object.
class ObjectBuilder {
 public:
  absl::Status Add(const Message& message) {
    const auto damaged = [&](absl::string_view what) {
      return DamagedHdf5(message.address, what);
    };
    Hdf5Fields fields(message.bytes);
    switch (message.kind) {
      case kDataspace: {
        ASSIGN_OR_RETURN(object_.shape,
                         ParseShape(message.bytes, message.address));
        break;
      }
      case kDatatype:
        object_.type = ParseType(message.bytes);
        if (message.is_shared) Refuse("has a type that has a name");
        break;
      case kLayout:
        return AddLayout(message);
      case kExternalFiles:
        Refuse("has its values in another file");
        break;
      case kAttribute:
        if (message.is_shared) break;
        object_.attributes.push_back(ParseAttribute(message.bytes));
        break;
      case kSymbolTable:
        object_.names = {fields.Number(8), fields.Number(8)};
        if (!fields.ok()) return damaged("a group's names are nowhere");
        break;
      case kLink:
        return AddLink(message);
      case kLinkInfo:
        fields.Skip(1);
        if ((fields.Number(1) & 1) != 0) fields.Skip(8);
        RefuseHeap(fields.Number(8), "a group of many names");
        break;
      case kAttributeInfo:
        fields.Skip(1);
        if ((fields.Number(1) & 1) != 0) fields.Skip(2);
        RefuseHeap(fields.Number(8), "many attributes, or long ones");
        break;
      default:
        break;
    }
    return absl::OkStatus();
  }

  Hdf5Object Take() { return std::move(object_); }

 private:
  void Refuse(absl::string_view what) {
    if (object_.refused.empty()) {
      object_.refused = RefusedHdf5(what);
    }
  }

  void RefuseHeap(uint64_t address, absl::string_view what) {
    if (address == kNoHdf5Address) return;
    Refuse(
        absl::StrCat("has ", what, " in the form of h5py's libver=\"latest\""));
  }

  absl::Status AddLayout(const Message& message) {
    object_.is_array = true;
    Hdf5Fields fields(message.bytes);
    const uint64_t version = fields.Number(1);
    const uint64_t kind = fields.Number(1);
    if (version < 3) {
      Refuse("is as HDF5 1.6 and older wrote arrays");
    } else if (kind == 0) {
      object_.data_bytes = fields.Number(2);
      object_.data = message.address + fields.place();
      fields.Skip(object_.data_bytes);
    } else if (kind == 1) {
      object_.data = fields.Number(8);
      object_.data_bytes = fields.Number(8);
    } else {
      Refuse("is in chunks, compressed perhaps");
    }
    if (fields.ok()) return absl::OkStatus();
    return DamagedHdf5(message.address, "an array's place is damaged");
  }

  absl::Status AddLink(const Message& message) {
    Hdf5Fields fields(message.bytes);
    fields.Skip(1);
    const uint64_t flags = fields.Number(1);
    const uint64_t kind = (flags & 8) != 0 ? fields.Number(1) : 0;
    if ((flags & 4) != 0) fields.Skip(8);
    if ((flags & 16) != 0) fields.Skip(1);
    const uint64_t bytes = fields.Number(size_t{1} << (flags & 3));
    const std::string name(fields.Text(bytes));
    if (kind != 0) {
      Refuse(LinkElsewhere(name));
      return absl::OkStatus();
    }
    const uint64_t address = fields.Number(8);
    if (!fields.ok() || bytes > kMaxNameBytes) {
      return DamagedHdf5(message.address, "a name in a group is damaged");
    }
    object_.links.emplace_back(name, address);
    return absl::OkStatus();
  }

  Hdf5Object object_;
};

}  // namespace

std::string RefusedHdf5(absl::string_view what) {
  return absl::StrCat(what, ", which is not read here: ", kWriteAgain);
}

std::string LinkElsewhere(absl::string_view name) {
  return absl::StrCat("has a link to another name or file, ", ShownText(name));
}

absl::StatusOr<Hdf5Object> ReadHdf5Object(Hdf5Bytes& file, uint64_t address) {
  ASSIGN_OR_RETURN(const std::vector<Message> messages,
                   MessageReader(file).Read(address));
  ObjectBuilder builder;
  for (const Message& message : messages) {
    RETURN_IF_ERROR(builder.Add(message));
  }
  return builder.Take();
}

}  // namespace parasol
