#include "storage/row_entry.h"

#include <cstring>

#include "storage/byte_order.h"

namespace parasol {
namespace {

constexpr size_t kHeaderBytes = 16;  // updates, count, floats
constexpr size_t kMaxCount = UINT32_MAX;

}  // namespace

bool EncodeRows(const RowBatch& batch, std::string& out) {
  const size_t count = batch.ids.size();
  const size_t floats = count == 0 ? 0 : batch.rows.size() / count;
  if (batch.rows.size() != count * floats || count > kMaxCount ||
      floats > kMaxCount) {
    return false;
  }
  out.clear();
  AppendLittleEndian(out, batch.updates);
  AppendLittleEndian(out, static_cast<uint32_t>(count));
  AppendLittleEndian(out, static_cast<uint32_t>(floats));
  out.append(reinterpret_cast<const char*>(batch.ids.data()),
             count * sizeof(uint64_t));
  out.append(reinterpret_cast<const char*>(batch.rows.data()),
             batch.rows.size() * sizeof(float));
  return true;
}

std::optional<RowsHeader> ParseRowsHeader(absl::string_view value) {
  if (value.size() < kHeaderBytes) return std::nullopt;
  const RowsHeader header = {
      .updates = LoadLittleEndian<int64_t>(value.data()),
      .count = LoadLittleEndian<uint32_t>(value.data() + 8),
      .floats = LoadLittleEndian<uint32_t>(value.data() + 12)};
  const size_t bytes = value.size() - kHeaderBytes;
  if (header.updates < 0) return std::nullopt;
  if (header.count == 0) {
    if (bytes > 0 || header.floats > 0) return std::nullopt;
    return header;
  }
  // Divides instead of multiplying: the product of what a file says may
  // overflow.
  const size_t row_bytes = sizeof(uint64_t) + header.floats * sizeof(float);
  if (header.floats == 0 || bytes % header.count != 0 ||
      bytes / header.count != row_bytes) {
    return std::nullopt;
  }
  return header;
}

void DecodedRows::Assign(const RowsHeader& header, absl::string_view value) {
  updates_ = header.updates;
  ids_.resize(header.count);
  rows_.resize(size_t{header.count} * header.floats);
  if (header.count == 0) return;
  const char* const ids = value.data() + kHeaderBytes;
  const size_t id_bytes = ids_.size() * sizeof(uint64_t);
  std::memcpy(ids_.data(), ids, id_bytes);
  std::memcpy(rows_.data(), ids + id_bytes, rows_.size() * sizeof(float));
}

}  // namespace parasol
