#include "storage/row_entry.h"

#include <cstring>

#include "storage/byte_order.h"

namespace parasol {
namespace {

constexpr size_t kHeaderBytes = 16;  // updates, count, floats
constexpr size_t kMaxCount = UINT32_MAX;

template <typename T>
void AppendArray(absl::Span<const T> values, std::string& out) {
  out.append(reinterpret_cast<const char*>(values.data()),
             values.size() * sizeof(T));
}

// Fills `values`, whose bytes begin at `bytes`; returns their end.
template <typename T>
const char* LoadArray(const char* bytes, std::vector<T>& values) {
  const size_t size = values.size() * sizeof(T);
  if (size > 0) std::memcpy(values.data(), bytes, size);
  return bytes + size;
}

}  // namespace

bool EncodeRows(const RowBatch& batch, std::string& out) {
  const size_t count = batch.ids.size();
  const size_t floats = count == 0 ? 0 : batch.rows.size() / count;
  if (batch.rows.size() != count * floats || count > kMaxCount ||
      floats > kMaxCount ||
      (!batch.touched.empty() && batch.touched.size() != count)) {
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
  AppendArray(batch.touched, out);
  return true;
}

std::optional<RowsHeader> ParseRowsHeader(absl::string_view value) {
  if (value.size() < kHeaderBytes) return std::nullopt;
  RowsHeader header = {.updates = LoadLittleEndian<int64_t>(value.data()),
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
  if (header.floats == 0 || bytes % header.count != 0) return std::nullopt;
  header.timed = bytes / header.count == row_bytes + sizeof(int64_t);
  if (!header.timed && bytes / header.count != row_bytes) return std::nullopt;
  return header;
}

void DecodedRows::Assign(const RowsHeader& header, absl::string_view value) {
  updates_ = header.updates;
  ids_.resize(header.count);
  rows_.resize(size_t{header.count} * header.floats);
  touched_.resize(header.timed ? header.count : 0);
  if (header.count == 0) return;
  const char* const ids = value.data() + kHeaderBytes;
  const size_t id_bytes = ids_.size() * sizeof(uint64_t);
  std::memcpy(ids_.data(), ids, id_bytes);
  const size_t row_bytes = rows_.size() * sizeof(float);
  std::memcpy(rows_.data(), ids + id_bytes, row_bytes);
  LoadArray(ids + id_bytes + row_bytes, touched_);
}

bool EncodeCounts(const CountBatch& batch, std::string& out) {
  const size_t count = batch.ids.size();
  if (count == 0 || count > kMaxCount || batch.counts.size() != count ||
      (!batch.touched.empty() && batch.touched.size() != count)) {
    return false;
  }
  out.clear();
  AppendLittleEndian(out, static_cast<uint32_t>(count));
  AppendArray(batch.ids, out);
  AppendArray(batch.counts, out);
  AppendArray(batch.touched, out);
  return true;
}

bool DecodedCounts::Assign(absl::string_view value) {
  if (value.size() < sizeof(uint32_t)) return false;
  const size_t count = LoadLittleEndian<uint32_t>(value.data());
  value.remove_prefix(sizeof(uint32_t));
  constexpr size_t kBytes = sizeof(uint64_t) + sizeof(uint32_t);
  if (count == 0 || value.size() % count != 0) return false;
  const bool is_timed = value.size() / count == kBytes + sizeof(int64_t);
  if (!is_timed && value.size() / count != kBytes) return false;
  ids_.resize(count);
  counts_.resize(count);
  touched_.resize(is_timed ? count : 0);
  const char* next = LoadArray(value.data(), ids_);
  next = LoadArray(next, counts_);
  LoadArray(next, touched_);
  return true;
}

void EncodeRemoved(absl::Span<const uint64_t> ids, std::string& out) {
  out.clear();
  AppendLittleEndian(out, static_cast<uint32_t>(ids.size()));
  AppendArray(ids, out);
}

std::optional<std::vector<uint64_t>> DecodeRemoved(absl::string_view value) {
  if (value.size() < sizeof(uint32_t)) return std::nullopt;
  const size_t count = LoadLittleEndian<uint32_t>(value.data());
  value.remove_prefix(sizeof(uint32_t));
  if (value.size() % sizeof(uint64_t) != 0 ||
      value.size() / sizeof(uint64_t) != count) {
    return std::nullopt;
  }
  std::vector<uint64_t> ids(count);
  LoadArray(value.data(), ids);
  return ids;
}

}  // namespace parasol
