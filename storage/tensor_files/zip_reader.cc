#include "storage/tensor_files/zip_reader.h"

#include <zlib.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/byte_order.h"
#include "storage/tensor_files/zip_format.h"

namespace parasol {
namespace {

// The longest comment that may stand behind the end record.
constexpr uint64_t kMaxCommentBytes = 0xffff;
// Far more than any archive of tensors has.
constexpr uint64_t kMaxDirectoryBytes = 256 << 20;
// Deflate makes no more bytes of one: a copy of 258 takes two bits.
constexpr uint64_t kMaxInflation = 1032;

uint16_t Load16(absl::string_view bytes, size_t offset) {
  return LoadLittleEndian<uint16_t>(bytes.data() + offset);
}
uint32_t Load32(absl::string_view bytes, size_t offset) {
  return LoadLittleEndian<uint32_t>(bytes.data() + offset);
}
uint64_t Load64(absl::string_view bytes, size_t offset) {
  return LoadLittleEndian<uint64_t>(bytes.data() + offset);
}

// The 64-bit numbers of a record's extra fields.
class Extra64 {
 public:
  explicit Extra64(absl::string_view extra) {
    while (extra.size() >= 4) {
      const size_t size = Load16(extra, 2);
      if (size > extra.size() - 4) return;
      if (Load16(extra, 0) == zip::kExtra64) fields_ = extra.substr(4, size);
      extra.remove_prefix(4 + size);
    }
  }

  // Returns `value`, or the next number if that stands in for it.
  uint64_t Resolve(uint32_t value) {
    if (value != zip::kSee64 || fields_.size() < sizeof(uint64_t)) return value;
    const uint64_t number = Load64(fields_, 0);
    fields_.remove_prefix(sizeof(uint64_t));
    return number;
  }

 private:
  absl::string_view fields_;
};

}  // namespace

absl::StatusOr<ZipReader> ZipReader::Open(const std::string& path) {
  ASSIGN_OR_RETURN(SizedFile file, SizedFile::Open(path));
  ZipReader reader(std::move(file));
  RETURN_IF_ERROR(reader.ReadDirectory());
  return reader;
}

absl::Status ZipReader::Damaged(absl::string_view what) const {
  return absl::DataLossError(
      absl::StrCat(file_->path(), ": is no whole ZIP archive: ", what));
}

// Offset and bytes of the directory, as the last end record says.
absl::StatusOr<std::pair<uint64_t, uint64_t>> ZipReader::FindDirectory() const {
  const uint64_t tail_bytes =
      std::min(file_->size(), kMaxCommentBytes + zip::kEndBytes);
  const uint64_t tail_begin = file_->size() - tail_bytes;
  ASSIGN_OR_RETURN(const std::string tail, file_->Read(tail_begin, tail_bytes));
  for (size_t end = tail.size(); end-- > 0;) {
    if (tail.size() - end < zip::kEndBytes ||
        Load32(tail, end) != zip::kEndSignature) {
      continue;
    }
    const std::pair<uint64_t, uint64_t> old = {Load32(tail, end + 16),
                                               Load32(tail, end + 12)};
    const uint64_t end_offset = tail_begin + end;
    if (end_offset < zip::kEnd64LocatorBytes) return old;
    ASSIGN_OR_RETURN(const std::string locator,
                     file_->Read(end_offset - zip::kEnd64LocatorBytes,
                                 zip::kEnd64LocatorBytes));
    if (Load32(locator, 0) != zip::kEnd64LocatorSignature) return old;
    ASSIGN_OR_RETURN(const std::string end_64,
                     file_->Read(Load64(locator, 8), zip::kEnd64Bytes));
    if (Load32(end_64, 0) != zip::kEnd64Signature) {
      return Damaged("its end record of 64 bits is not where it should be");
    }
    return std::pair(Load64(end_64, 48), Load64(end_64, 40));
  }
  return Damaged("it has no end record");
}

absl::Status ZipReader::ReadDirectory() {
  ASSIGN_OR_RETURN(const auto place, FindDirectory());
  if (place.second > kMaxDirectoryBytes) {
    return Damaged(absl::StrCat("its directory has ", place.second, " bytes"));
  }
  ASSIGN_OR_RETURN(const std::string bytes,
                   file_->Read(place.first, place.second));
  absl::string_view directory = bytes;
  while (!directory.empty()) RETURN_IF_ERROR(ReadRecord(directory));
  uint64_t left = file_->size();
  for (const Place& member : places_) {
    if (member.stored_bytes > left) {
      return Damaged("its members have more bytes than the file");
    }
    left -= member.stored_bytes;
  }
  return absl::OkStatus();
}

void ZipReader::Release(size_t member) { places_[member].inflated = nullptr; }

absl::Status ZipReader::ReadRecord(absl::string_view& directory) {
  if (directory.size() < zip::kCentralBytes ||
      Load32(directory, 0) != zip::kCentralSignature) {
    return Damaged("its directory is damaged");
  }
  const size_t name_bytes = Load16(directory, 28);
  const size_t extra_bytes = Load16(directory, 30);
  const size_t bytes =
      zip::kCentralBytes + name_bytes + extra_bytes + Load16(directory, 32);
  if (bytes > directory.size()) return Damaged("its directory is damaged");
  Extra64 extra(directory.substr(zip::kCentralBytes + name_bytes, extra_bytes));
  Member member;
  member.name = std::string(directory.substr(zip::kCentralBytes, name_bytes));
  member.size = extra.Resolve(Load32(directory, 24));
  Place place;
  place.flags = Load16(directory, 8);
  place.method = Load16(directory, 10);
  place.crc = Load32(directory, 16);
  place.stored_bytes = extra.Resolve(Load32(directory, 20));
  place.local_header = extra.Resolve(Load32(directory, 42));
  if (place.method == zip::kStored && place.stored_bytes != member.size) {
    return Damaged(absl::StrCat("member ", member.name, " has two sizes"));
  }
  if (place.method == zip::kDeflated &&
      member.size / kMaxInflation > place.stored_bytes) {
    return Damaged(absl::StrCat("member ", member.name, " has ", member.size,
                                " bytes, it says, of ", place.stored_bytes,
                                " that are compressed"));
  }
  members_.push_back(std::move(member));
  places_.push_back(std::move(place));
  directory.remove_prefix(bytes);
  return absl::OkStatus();
}

absl::Status ZipReader::Locate(Place& place) const {
  ASSIGN_OR_RETURN(const std::string header,
                   file_->Read(place.local_header, zip::kLocalBytes));
  if (Load32(header, 0) != zip::kLocalSignature) {
    return Damaged("a local header is not where it should be");
  }
  place.data = place.local_header + zip::kLocalBytes + Load16(header, 26) +
               Load16(header, 28);
  if (place.data > file_->size() ||
      place.stored_bytes > file_->size() - place.data) {
    return Damaged("a member is longer than the file");
  }
  return absl::OkStatus();
}

absl::Status ZipReader::CheckReadable(size_t member) const {
  const Place& place = places_[member];
  if ((place.flags & zip::kEncryptedFlag) == 0 &&
      (place.method == zip::kStored || place.method == zip::kDeflated)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      file_->path(), ": member ", members_[member].name,
      " is encrypted or compressed in a way that is not known here; write it "
      "with numpy.savez"));
}

absl::Status ZipReader::Read(size_t member, uint64_t offset,
                             absl::Span<char> out) {
  RETURN_IF_ERROR(CheckReadable(member));
  Place& place = places_[member];
  const auto& [name, size] = members_[member];
  if (place.data == 0) {
    RETURN_IF_ERROR(Locate(place)) << name;
  }
  if (offset > size || out.size() > size - offset) {
    return Damaged(absl::StrCat("member ", name, " has only ", size, " bytes"));
  }
  RETURN_IF_ERROR(ReadBytes(place, offset, out)) << name;
  return offset == place.checked ? CheckCrc(member, out) : absl::OkStatus();
}

absl::StatusOr<std::optional<uint64_t>> ZipReader::OffsetInFile(size_t member) {
  RETURN_IF_ERROR(CheckReadable(member));
  Place& place = places_[member];
  if (place.method != zip::kStored) return std::nullopt;
  if (place.data == 0) {
    RETURN_IF_ERROR(Locate(place)) << members_[member].name;
  }
  return place.data;
}

absl::Status ZipReader::ReadBytes(Place& place, uint64_t offset,
                                  absl::Span<char> out) const {
  if (place.method == zip::kStored) {
    return file_->Read(place.data + offset, out);
  }
  if (place.inflated == nullptr) {
    place.inflated =
        std::make_unique<InflatedBytes>(*file_, place.data, place.stored_bytes);
  }
  return place.inflated->Read(offset, out);
}

absl::Status ZipReader::CheckCrc(size_t member, absl::Span<const char> bytes) {
  Place& place = places_[member];
  place.checked += bytes.size();
  place.crc_so_far = static_cast<uint32_t>(
      crc32_z(place.crc_so_far, reinterpret_cast<const Bytef*>(bytes.data()),
              bytes.size()));
  if (place.checked < members_[member].size || place.crc_so_far == place.crc) {
    return absl::OkStatus();
  }
  return Damaged(absl::StrCat("the checksum of member ", members_[member].name,
                              " is wrong"));
}

}  // namespace parasol
