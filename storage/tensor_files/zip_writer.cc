#include "storage/tensor_files/zip_writer.h"

#include <zlib.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/byte_order.h"
#include "storage/tensor_files/zip_format.h"

namespace parasol {
namespace {

// The versions of the format that a reader must know.
constexpr uint16_t kVersion = 20;
constexpr uint16_t kVersion64 = 45;
// 1980-01-01, the first day that there is.
constexpr uint16_t kDate = 1 << 5 | 1;
// Names are UTF-8.
constexpr uint16_t kFlags = 1 << 11;

void Append16(std::string& out, uint16_t value) {
  AppendLittleEndian(out, value);
}
void Append32(std::string& out, uint32_t value) {
  AppendLittleEndian(out, value);
}
void Append64(std::string& out, uint64_t value) {
  AppendLittleEndian(out, value);
}

// What local and central records have in common: version to sizes.
void AppendProperties(std::string& out, bool is_64, uint32_t crc,
                      uint64_t size) {
  const uint32_t size_32 = is_64 ? zip::kSee64 : static_cast<uint32_t>(size);
  Append16(out, is_64 ? kVersion64 : kVersion);
  Append16(out, kFlags);
  Append16(out, zip::kStored);
  Append16(out, 0);  // time
  Append16(out, kDate);
  Append32(out, crc);
  Append32(out, size_32);  // as it is stored
  Append32(out, size_32);
}

}  // namespace

absl::StatusOr<ZipWriter> ZipWriter::Create(const std::string& path,
                                            Options options) {
  ASSIGN_OR_RETURN(StagedFile file, StagedFile::Create(path));
  return ZipWriter(std::move(file), options);
}

absl::Status ZipWriter::BeginMember(const std::string& name, uint64_t size) {
  members_.push_back({.name = name, .size = size, .offset = file_.size()});
  std::string extra;
  if (Is64(size)) {
    Append16(extra, zip::kExtra64);
    Append16(extra, 2 * sizeof(uint64_t));
    Append64(extra, size);
    Append64(extra, size);
  }
  std::string header;
  Append32(header, zip::kLocalSignature);
  AppendProperties(header, Is64(size), /*crc=*/0, size);
  Append16(header, static_cast<uint16_t>(name.size()));
  Append16(header, static_cast<uint16_t>(extra.size()));
  return file_.Append(absl::StrCat(header, name, extra));
}

absl::Status ZipWriter::Append(absl::string_view bytes) {
  Member& member = members_.back();
  member.crc = static_cast<uint32_t>(crc32_z(
      member.crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  return file_.Append(bytes);
}

absl::Status ZipWriter::EndMember() {
  const Member& member = members_.back();
  std::string crc;
  Append32(crc, member.crc);
  return file_.Overwrite(member.offset + zip::kLocalCrcOffset, crc);
}

absl::Status ZipWriter::Finish() {
  const uint64_t directory = file_.size();
  for (const Member& member : members_) {
    RETURN_IF_ERROR(file_.Append(CentralRecord(member)));
  }
  RETURN_IF_ERROR(
      file_.Append(EndRecords(directory, file_.size() - directory)));
  return file_.Commit();
}

std::string ZipWriter::CentralRecord(const Member& member) const {
  std::string fields;
  if (Is64(member.size)) {
    Append64(fields, member.size);
    Append64(fields, member.size);
  }
  if (Is64(member.offset)) Append64(fields, member.offset);
  std::string extra;
  if (!fields.empty()) {
    Append16(extra, zip::kExtra64);
    Append16(extra, static_cast<uint16_t>(fields.size()));
    absl::StrAppend(&extra, fields);
  }
  std::string record;
  Append32(record, zip::kCentralSignature);
  Append16(record, kVersion64);  // that made it
  AppendProperties(record, Is64(member.size), member.crc, member.size);
  Append16(record, static_cast<uint16_t>(member.name.size()));
  Append16(record, static_cast<uint16_t>(extra.size()));
  record.append(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
  Append32(record, Is64(member.offset) ? zip::kSee64
                                       : static_cast<uint32_t>(member.offset));
  return absl::StrCat(record, member.name, extra);
}

std::string ZipWriter::EndRecords(uint64_t directory, uint64_t bytes) const {
  const uint64_t count = members_.size();
  const bool is_64 =
      Is64(directory) || Is64(bytes) || count >= zip::kSee64Count;
  std::string records;
  if (is_64) {
    Append32(records, zip::kEnd64Signature);
    Append64(records, zip::kEnd64Bytes - 12);  // bytes that follow
    Append16(records, kVersion64);
    Append16(records, kVersion64);
    Append64(records, 0);  // disks
    Append64(records, count);
    Append64(records, count);
    Append64(records, bytes);
    Append64(records, directory);
    Append32(records, zip::kEnd64LocatorSignature);
    Append32(records, 0);  // disk
    Append64(records, directory + bytes);
    Append32(records, 1);  // disks
  }
  const uint16_t count_16 =
      is_64 ? zip::kSee64Count : static_cast<uint16_t>(count);
  Append32(records, zip::kEndSignature);
  Append32(records, 0);  // disks
  Append16(records, count_16);
  Append16(records, count_16);
  Append32(records, is_64 ? zip::kSee64 : static_cast<uint32_t>(bytes));
  Append32(records, is_64 ? zip::kSee64 : static_cast<uint32_t>(directory));
  Append16(records, 0);  // comment
  return records;
}

}  // namespace parasol
