#include "cluster/checkpoint/warm_tensors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/row_hash.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "storage/tensor_files/tensor.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {
namespace {

// Bytes of a table's rows that are in memory at a time.
constexpr uint64_t kRowBytes = 1 << 20;
// Ids that are compared with each other at once: some 80 MB.
constexpr uint64_t kIdsOfAPass = 4 << 20;
constexpr uint64_t kIdsAtOnce = 1 << 16;

bool IsIdType(ElementType type) {
  return type == ElementType::kInt32 || type == ElementType::kInt64 ||
         type == ElementType::kUint64;
}

bool IsFloatType(ElementType type) {
  return type != ElementType::kOther && !IsIdType(type);
}

class TensorSource : public WarmSource {
 public:
  TensorSource(const std::string& path, std::unique_ptr<TensorReader> reader)
      : reader_(std::move(reader)) {
    description_ = absl::StrCat("tensors ", path);
  }

  // Tells tables from variables.
  absl::Status Start() {
    std::map<std::string, size_t> by_name;
    for (size_t i = 0; i < tensors().size(); ++i) {
      by_name[tensors()[i].name] = i;
    }
    for (size_t i = 0; i < tensors().size(); ++i) {
      const TensorInfo& tensor = tensors()[i];
      if (!IsFloatType(tensor.type)) continue;
      absl::string_view table = tensor.name;
      const auto ids = absl::ConsumeSuffix(&table, "/rows")
                           ? by_name.find(absl::StrCat(table, "/ids"))
                           : by_name.end();
      if (ids != by_name.end() && IsIdType(tensors()[ids->second].type)) {
        RETURN_IF_ERROR(CheckRows(tensor, tensors()[ids->second]));
        AddTable(table, {.ids = ids->second, .rows = i}, std::nullopt);
        continue;
      }
      if (absl::ConsumeSuffix(&table, "/embeddings") &&
          tensor.shape.size() == 2 && tensor.shape[1] > 0) {
        AddTable(table, {.rows = i}, variables_.size());
      }
      variables_.push_back({tensor.name, tensor.shape});
      variable_tensors_.push_back(i);
    }
    return absl::OkStatus();
  }

  absl::Status Read(size_t variable, int64_t first,
                    absl::Span<float> out) override {
    return ReadFloats(variable_tensors_[variable], first, out);
  }

  absl::Status VisitRows(size_t table, RowsVisit visit) override {
    const auto [ids_tensor, rows_tensor] = table_tensors_[table];
    const auto width = static_cast<uint64_t>(tables_[table].width);
    const uint64_t count = tensors()[rows_tensor].shape[0];
    if (ids_tensor) {
      RETURN_IF_ERROR(CheckDistinctIds(*ids_tensor));
    }
    const uint64_t most =
        std::max<uint64_t>(1, kRowBytes / (width * sizeof(float)));
    std::vector<uint64_t> ids;
    std::vector<float> rows;
    for (uint64_t first = 0; first < count; first += ids.size()) {
      ids.resize(std::min(most, count - first));
      rows.resize(ids.size() * width);
      if (ids_tensor) {
        RETURN_IF_ERROR(ReadIds(*ids_tensor, first, absl::MakeSpan(ids)));
      } else {
        std::iota(ids.begin(), ids.end(), first);
      }
      RETURN_IF_ERROR(
          ReadFloats(rows_tensor, first * width, absl::MakeSpan(rows)));
      RETURN_IF_ERROR(visit(ids, rows));
    }
    return absl::OkStatus();
  }

  // The reader verifies each tensor that it reads.
  absl::Status Verify() override { return absl::OkStatus(); }

 private:
  struct TableTensors {
    // nullopt: the ids are 0, 1, …
    std::optional<size_t> ids = {};
    size_t rows = 0;
  };

  const std::vector<TensorInfo>& tensors() const { return reader_->tensors(); }

  void AddTable(absl::string_view name, TableTensors tensors,
                std::optional<size_t> variable) {
    table_tensors_.push_back(tensors);
    tables_.push_back({.name = std::string(name),
                       .width = this->tensors()[tensors.rows].shape[1],
                       .variable = variable});
  }

  absl::Status CheckRows(const TensorInfo& rows, const TensorInfo& ids) const {
    if (rows.shape.size() == 2 && rows.shape[1] > 0 && ids.shape.size() == 1 &&
        ids.shape[0] == rows.shape[0]) {
      return absl::OkStatus();
    }
    return absl::DataLossError(
        absl::StrCat(description_, ": ", ids.name, " ", ShapeText(ids.shape),
                     " and ", rows.name, " ", ShapeText(rows.shape),
                     " are no ids and rows of a table"));
  }

  absl::Status ReadBytes(size_t tensor, uint64_t first, size_t count) {
    const size_t size = BytesOf(tensors()[tensor].type);
    bytes_.resize(count * size);
    return reader_->Read(tensor, first * size, absl::MakeSpan(bytes_));
  }
  absl::Status ReadFloats(size_t tensor, uint64_t first,
                          absl::Span<float> out) {
    RETURN_IF_ERROR(ReadBytes(tensor, first, out.size()));
    ToFloat32(tensors()[tensor].type, bytes_, out);
    return absl::OkStatus();
  }
  absl::Status ReadIds(size_t tensor, uint64_t first,
                       absl::Span<uint64_t> out) {
    RETURN_IF_ERROR(ReadBytes(tensor, first, out.size()));
    ToUint64(tensors()[tensor].type, bytes_, out);
    return absl::OkStatus();
  }

  // Goes through the ids as often as their number has kIdsOfAPass, each time
  // for the ids of one part, so that memory is bounded.
  absl::Status CheckDistinctIds(size_t tensor) {
    const uint64_t count = tensors()[tensor].shape[0];
    const uint64_t passes = (count + kIdsOfAPass - 1) / kIdsOfAPass;
    std::vector<uint64_t> ids;
    for (uint64_t pass = 0; pass < passes; ++pass) {
      absl::flat_hash_set<uint64_t> seen;
      for (uint64_t first = 0; first < count; first += ids.size()) {
        ids.resize(std::min(count - first, kIdsAtOnce));
        RETURN_IF_ERROR(ReadIds(tensor, first, absl::MakeSpan(ids)));
        for (const uint64_t id : ids) {
          if (RowHash(id) % passes != pass || seen.insert(id).second) continue;
          return absl::DataLossError(absl::StrCat(description_, ": ",
                                                  tensors()[tensor].name,
                                                  " has id ", id, " twice"));
        }
      }
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<TensorReader> reader_;
  std::vector<size_t> variable_tensors_;
  std::vector<TableTensors> table_tensors_;
  std::vector<char> bytes_;  // kept for its memory
};

}  // namespace

absl::StatusOr<std::unique_ptr<WarmSource>> OpenWarmTensors(
    TensorFormat format, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<TensorReader> reader,
                   OpenTensors(format, path));
  auto source = std::make_unique<TensorSource>(path, std::move(reader));
  RETURN_IF_ERROR(source->Start());
  return source;
}

}  // namespace parasol
