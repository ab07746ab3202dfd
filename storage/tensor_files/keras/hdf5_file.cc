#include "storage/tensor_files/keras/hdf5_file.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "storage/tensor_files/keras/hdf5_object.h"

namespace parasol {
namespace {

constexpr absl::string_view kMagic("\x89HDF\r\n\x1a\n", 8);
constexpr int kMaxDepth = 32;
constexpr size_t kMaxPathBytes = 4096;
// All paths together: far more than any model has.
constexpr size_t kMaxPathsBytes = 64 << 20;
constexpr size_t kLeafEntryBytes = 40;
// Of an entry that names another name.
constexpr uint64_t kSoftLink = 2;

// Texts that lie apart from the attributes that have them.
class TextHeap {
 public:
  explicit TextHeap(Hdf5Bytes& file) : file_(file), left_(file.size()) {}

  // Returns the text that `place`, an attribute's value, points to. All texts
  // together are no longer than the file: each is one attribute's.
  absl::StatusOr<std::string> TextAt(absl::string_view place) {
    Hdf5Fields fields(place);
    const uint64_t bytes = fields.Number(4);
    const uint64_t address = fields.Number(8);
    const uint64_t index = fields.Number(4);
    if (!fields.ok() || bytes == 0) return std::string();
    auto found = collections_.find(address);
    if (found == collections_.end()) {
      ASSIGN_OR_RETURN(Collection collection, Read(address));
      found = collections_.emplace(address, std::move(collection)).first;
    }
    const auto text = found->second.find(index);
    if (text == found->second.end() || bytes > text->second.size()) {
      return DamagedHdf5(address, "a text is not here");
    }
    if (bytes > left_) {
      return DamagedHdf5(address, "too many attributes have this text");
    }
    left_ -= bytes;
    return text->second.substr(0, bytes);
  }

 private:
  using Collection = std::map<uint64_t, std::string>;

  absl::StatusOr<Collection> Read(uint64_t address) {
    ASSIGN_OR_RETURN(const std::string start, file_.Read(address, 16));
    Hdf5Fields header(start);
    const bool is_there = header.Text(4) == "GCOL";
    header.Skip(4);
    const uint64_t bytes = header.Number(8);
    if (!is_there || bytes < 16) {
      return DamagedHdf5(address, "no texts of attributes are here");
    }
    ASSIGN_OR_RETURN(const std::string rest,
                     file_.Read(address + 16, bytes - 16));
    Collection collection;
    Hdf5Fields fields(rest);
    while (fields.left() >= 16) {
      const uint64_t index = fields.Number(2);
      fields.Skip(6);
      const uint64_t size = fields.Number(8);
      if (index == 0) break;  // what is free
      collection[index] = std::string(fields.Text(size));
      fields.Align();
    }
    return collection;
  }

  Hdf5Bytes& file_;
  uint64_t left_;  // bytes that texts may still have
  std::map<uint64_t, Collection> collections_;
};

// The names of a group of the older kind, and where they point.
class SymbolTable {
 public:
  using Links = std::vector<std::pair<std::string, uint64_t>>;

  explicit SymbolTable(Hdf5Bytes& file) : file_(file) {}

  // Reads the names of a group that a message calls `group`.
  absl::StatusOr<Links> Read(absl::string_view group, uint64_t tree,
                             uint64_t heap) {
    group_ = std::string(group);
    ASSIGN_OR_RETURN(const std::string start, file_.Read(heap, 32));
    Hdf5Fields fields(start);
    const bool is_there = fields.Text(4) == "HEAP";
    fields.Skip(4);
    const uint64_t bytes = fields.Number(8);
    fields.Skip(8);
    const uint64_t address = fields.Number(8);
    if (!is_there) return DamagedHdf5(heap, "no names of a group are here");
    ASSIGN_OR_RETURN(names_, file_.Read(address, bytes));
    left_ = names_.size();
    RETURN_IF_ERROR(ReadNode(tree, /*most_level=*/255));
    return std::move(links_);
  }

 private:
  // Reads a node of the tree, whose level is `most_level` or lower.
  absl::Status ReadNode(uint64_t address, uint64_t most_level) {
    ASSIGN_OR_RETURN(const std::string start, file_.Read(address, 24));
    Hdf5Fields header(start);
    const bool is_there = header.Text(4) == "TREE";
    const uint64_t kind = header.Number(1);
    const uint64_t level = header.Number(1);
    const uint64_t children = header.Number(2);
    if (!is_there || kind != 0 || level > most_level) {
      return DamagedHdf5(address, "no part of a group's tree is here");
    }
    ASSIGN_OR_RETURN(const std::string rest,
                     file_.Read(address + 24, 16 * children));
    Hdf5Fields fields(rest);
    for (uint64_t i = 0; i < children; ++i) {
      fields.Skip(8);
      const uint64_t child = fields.Number(8);
      RETURN_IF_ERROR(level == 0 ? ReadLeaf(child)
                                 : ReadNode(child, level - 1));
    }
    return absl::OkStatus();
  }

  absl::Status ReadLeaf(uint64_t address) {
    ASSIGN_OR_RETURN(const std::string start, file_.Read(address, 8));
    Hdf5Fields header(start);
    const bool is_there = header.Text(4) == "SNOD";
    header.Skip(2);
    const uint64_t entries = header.Number(2);
    if (!is_there) return DamagedHdf5(address, "no group's entries are here");
    ASSIGN_OR_RETURN(const std::string rest,
                     file_.Read(address + 8, kLeafEntryBytes * entries));
    Hdf5Fields fields(rest);
    for (uint64_t i = 0; i < entries; ++i) {
      const uint64_t name = fields.Number(8);
      const uint64_t object = fields.Number(8);
      const bool is_soft = fields.Number(4) == kSoftLink;
      fields.Skip(kLeafEntryBytes - 20);
      const size_t end = names_.find('\0', name);
      if (end == std::string::npos) {
        return DamagedHdf5(address, "an entry's name is nowhere");
      }
      // Each entry has bytes of its own there.
      if (end + 1 - name > left_) {
        return DamagedHdf5(address, "entries share their names");
      }
      left_ -= end + 1 - name;
      if (is_soft) {
        return absl::InvalidArgumentError(absl::StrCat(
            group_, " ",
            RefusedHdf5(LinkElsewhere(names_.substr(name, end - name)))));
      }
      links_.emplace_back(names_.substr(name, end - name), object);
    }
    return absl::OkStatus();
  }

  Hdf5Bytes& file_;
  std::string group_;
  std::string names_;  // each with a byte 0 behind it
  uint64_t left_ = 0;  // bytes of `names_` that are nobody's yet
  Links links_;
};

// Visits all objects from the root on.
class Visitor {
 public:
  explicit Visitor(Hdf5Bytes& file) : file_(file), texts_(file) {}

  absl::Status Visit(const std::string& path, uint64_t address, int depth) {
    ASSIGN_OR_RETURN(Hdf5Object object, ReadHdf5Object(file_, address));
    const std::string shown =
        path.empty() ? "the root" : ShownText(path, kMaxPathBytes);
    if (!object.refused.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(shown, " ", object.refused));
    }
    ASSIGN_OR_RETURN(auto attributes, TextsOf(object));
    if (object.is_array) {
      return AddArray(path, address, object, attributes["dtype"]);
    }
    if (!attributes.empty()) contents_.attributes[path] = std::move(attributes);
    if (object.names) {
      ASSIGN_OR_RETURN(object.links,
                       SymbolTable(file_).Read(shown, object.names->first,
                                               object.names->second));
    }
    if (depth == kMaxDepth) {
      return DamagedHdf5(address,
                         absl::StrCat("groups are nested too deep: ", shown));
    }
    for (const auto& [name, child] : object.links) {
      ASSIGN_OR_RETURN(const std::string below, PathOf(path, name, address));
      RETURN_IF_ERROR(Visit(below, child, depth + 1));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Hdf5Contents> Finish() {
    const auto path = [](const Hdf5Array& array) -> const std::string& {
      return array.path;
    };
    std::ranges::sort(contents_.arrays, {}, path);
    const auto twice = std::ranges::adjacent_find(contents_.arrays, {}, path);
    if (twice == contents_.arrays.end()) return std::move(contents_);
    return DamagedHdf5(twice->data,
                       absl::StrCat(ShownText(twice->path), " is there twice"));
  }

 private:
  absl::StatusOr<std::string> PathOf(const std::string& group,
                                     const std::string& name,
                                     uint64_t address) {
    const std::string path =
        group.empty() ? name : absl::StrCat(group, "/", name);
    paths_bytes_ += path.size();
    if (name.empty() || name.find('/') != std::string::npos) {
      return DamagedHdf5(address, absl::StrCat("a group has a name that can be "
                                               "none: \"",
                                               ShownText(name), "\""));
    }
    if (path.size() > kMaxPathBytes || paths_bytes_ > kMaxPathsBytes) {
      return DamagedHdf5(
          address, absl::StrCat("the path of \"", ShownText(name), "\" has ",
                                path.size(), " bytes, of ", kMaxPathBytes,
                                " at most, and all paths ", paths_bytes_,
                                ", of ", kMaxPathsBytes, " at most"));
    }
    return path;
  }

  absl::StatusOr<std::map<std::string, std::string>> TextsOf(
      const Hdf5Object& object) {
    std::map<std::string, std::string> texts;
    for (const Hdf5Attribute& attribute : object.attributes) {
      if (attribute.name.empty()) continue;
      std::string& text = texts[attribute.name];
      if (!attribute.is_scalar) continue;
      if (attribute.type.kind == Hdf5Type::Kind::kText) {
        text = attribute.value.substr(0, attribute.type.bytes);
      } else if (attribute.type.kind == Hdf5Type::Kind::kTextElsewhere) {
        ASSIGN_OR_RETURN(text, texts_.TextAt(attribute.value));
      }
      text.resize(std::min(text.size(), text.find('\0')));
    }
    return texts;
  }

  absl::Status AddArray(const std::string& path, uint64_t address,
                        Hdf5Object& object, absl::string_view written_type) {
    // Keras's bfloat16 has no type of its own, but a note.
    if (object.type.kind == Hdf5Type::Kind::kOpaque && object.type.bytes == 2 &&
        written_type == "bfloat16") {
      object.type.name = "bfloat16";
    }
    const auto damaged = [&](absl::string_view what) {
      return DamagedHdf5(address,
                         absl::StrCat(ShownText(path, kMaxPathBytes), what));
    };
    uint64_t elements = 1;
    for (const int64_t size : object.shape) {
      if (size != 0 && elements > (uint64_t{1} << 56) / size) {
        return damaged(" has more elements than any file");
      }
      elements *= size;
    }
    if (elements * object.type.bytes != object.data_bytes &&
        object.data != kNoHdf5Address) {
      return damaged(absl::StrCat(" has ", object.data_bytes,
                                  " bytes for the shape ",
                                  ShapeText(object.shape)));
    }
    if (elements == 0) object.data = 0;
    if (object.data == kNoHdf5Address) return damaged(" has no values");
    if (object.data > file_.size() ||
        (elements > 0 && object.data_bytes > file_.size() - object.data)) {
      return damaged(absl::StrCat(": its values, ", object.data_bytes,
                                  " bytes from byte ", object.data,
                                  " on, are not all there"));
    }
    contents_.arrays.push_back(
        {path, object.type.name, object.shape, object.data});
    return absl::OkStatus();
  }

  Hdf5Bytes& file_;
  TextHeap texts_;
  size_t paths_bytes_ = 0;
  Hdf5Contents contents_;
};

// Returns the address of the root's header, of a superblock of any version.
absl::StatusOr<uint64_t> RootOf(Hdf5Bytes& file) {
  constexpr uint64_t kStartBytes = 56;
  ASSIGN_OR_RETURN(const std::string start,
                   file.Read(0, std::min(file.size(), kStartBytes)));
  Hdf5Fields fields(start);
  if (fields.Text(8) != kMagic) {
    return DamagedHdf5(0, "it does not begin as HDF5 does");
  }
  const uint64_t version = fields.Number(1);
  const bool is_old = version < 2;
  if (is_old) fields.Skip(4);
  const uint64_t address_bytes = fields.Number(1);
  const uint64_t length_bytes = fields.Number(1);
  if (version > 3 || address_bytes != 8 || length_bytes != 8) {
    return DamagedHdf5(8,
                       absl::StrCat("version ", version, " with addresses of ",
                                    address_bytes, " bytes is not known"));
  }
  fields.Skip(is_old ? 9 : 1);
  if (version == 1) fields.Skip(4);
  const uint64_t base = fields.Number(8);
  fields.Skip(8);
  const uint64_t end = fields.Number(8);
  if (!fields.ok() || base != 0 || end > file.size()) {
    return DamagedHdf5(
        fields.place(),
        absl::StrCat("it begins at byte ", base, " and has ", end,
                     " bytes, it says, but there are ", file.size()));
  }
  if (!is_old) return fields.Number(8);
  // Behind the driver and the root's empty name.
  ASSIGN_OR_RETURN(const std::string root,
                   file.Read(fields.place() + 16, sizeof(uint64_t)));
  return Hdf5Fields(root).Number(8);
}

}  // namespace

absl::StatusOr<Hdf5Contents> ReadHdf5(uint64_t size, Hdf5Read read) {
  Hdf5Bytes file(size, read);
  ASSIGN_OR_RETURN(const uint64_t root, RootOf(file));
  Visitor visitor(file);
  RETURN_IF_ERROR(visitor.Visit("", root, 0));
  return visitor.Finish();
}

}  // namespace parasol
