#include "ml/input/file/array_files.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/file/file_set.h"
#include "ml/input/file/local_files.h"
#include "ml/input/file/stored_files.h"
#include "storage/tensor_files/npy_reader.h"
#include "storage/tensor_files/npz_reader.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {
namespace {

using AppendNumbers = void (*)(const char* numbers, size_t values,
                               std::vector<FieldValue>& to);

template <typename Number, typename Convert>
void AppendEach(const char* numbers, size_t values, Convert convert,
                std::vector<FieldValue>& to) {
  for (size_t i = 0; i < values; ++i) {
    Number number;
    std::memcpy(&number, numbers + i * sizeof(Number), sizeof(Number));
    to.push_back(convert(number));
  }
}

template <typename Number>
void AppendIntegers(const char* numbers, size_t values,
                    std::vector<FieldValue>& to) {
  AppendEach<Number>(numbers, values, FieldValue::Integer, to);
}

void AppendUnsigned(const char* numbers, size_t values,
                    std::vector<FieldValue>& to) {
  AppendEach<uint64_t>(numbers, values, FieldValue::Unsigned, to);
}

void AppendFloats(const char* numbers, size_t values,
                  std::vector<FieldValue>& to) {
  AppendEach<float>(numbers, values, FieldValue::Real, to);
}

void AppendDoubles(const char* numbers, size_t values,
                   std::vector<FieldValue>& to) {
  AppendEach<double>(numbers, values, FieldValue::Double, to);
}

void AppendHalves(const char* numbers, size_t values,
                  std::vector<FieldValue>& to) {
  for (size_t i = 0; i < values; ++i) {
    float number = 0;
    ToFloat32(
        ElementType::kFloat16,
        absl::MakeConstSpan(numbers + i * sizeof(uint16_t), sizeof(uint16_t)),
        absl::MakeSpan(&number, 1));
    to.push_back(FieldValue::Real(number));
  }
}

// Returns nullptr for a type that no array of a data set has.
AppendNumbers AppendOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
      return AppendHalves;
    case ElementType::kFloat32:
      return AppendFloats;
    case ElementType::kFloat64:
      return AppendDoubles;
    case ElementType::kBool:
    case ElementType::kUint8:
      return AppendIntegers<uint8_t>;
    case ElementType::kInt8:
      return AppendIntegers<int8_t>;
    case ElementType::kInt16:
      return AppendIntegers<int16_t>;
    case ElementType::kInt32:
      return AppendIntegers<int32_t>;
    case ElementType::kInt64:
      return AppendIntegers<int64_t>;
    case ElementType::kUint16:
      return AppendIntegers<uint16_t>;
    case ElementType::kUint32:
      return AppendIntegers<uint32_t>;
    case ElementType::kUint64:
      return AppendUnsigned;
    case ElementType::kBfloat16:
    case ElementType::kOther:
      break;
  }
  return nullptr;
}

std::vector<int64_t> ShapeOfExample(const TensorInfo& tensor) {
  return {tensor.shape.begin() + 1, tensor.shape.end()};
}

// Number of elements of an example; 0 also if no machine has so many, as the
// shape of no examples may say.
int64_t ValuesOf(absl::Span<const int64_t> shape) {
  int64_t values = 1;
  for (const int64_t size : shape) {
    constexpr int64_t kMost = int64_t{1} << 40;
    if (__builtin_mul_overflow(values, size, &values) || values > kMost) {
      return 0;
    }
  }
  return values;
}

// What an array's first file says of it.
ListedArray Described(const TensorInfo& tensor) {
  ListedArray array = {
      .name = tensor.name, .shape = ShapeOfExample(tensor), .file_starts = {0}};
  array.example_bytes = ValuesOf(array.shape) * BytesOf(tensor.type);
  if (AppendOf(tensor.type) == nullptr) {
    array.fault =
        "has elements of a type that is not read; save it as float32, float64, "
        "bool or an integer of the machine's byte order";
  } else if (array.example_bytes == 0) {
    array.fault =
        absl::StrCat("has no values, but the shape ", ShapeText(tensor.shape));
  }
  return array;
}

// Opens a file, of an array of that name or an archive: it is brought, for its
// names are where it ends.
absl::StatusOr<std::unique_ptr<TensorReader>> OpenFile(
    const std::string& path, const std::string& name) {
  ASSIGN_OR_RETURN(const std::string local, BroughtFile(path));
  absl::StatusOr<std::unique_ptr<TensorReader>> opened =
      name.empty() ? OpenNpz(local) : OpenNpy(local, name);
  if (opened.ok() || local == path) return opened;
  return absl::Status(
      opened.status().code(),
      absl::StrReplaceAll(opened.status().message(), {{local, path}}));
}

// Adds the examples of the array's next file.
void AddFile(const std::string& path, const TensorInfo& tensor,
             ListedArray& array) {
  const ListedArray other = Described(tensor);
  if (array.fault.empty() && other.fault != array.fault) {
    array.fault = absl::StrCat(other.fault, " (", path, ")");
  }
  if (array.fault.empty() && (other.shape != array.shape ||
                              other.example_bytes != array.example_bytes)) {
    array.fault = absl::StrCat(
        "has examples of the shape ", ShapeText(other.shape), " and ",
        other.example_bytes, " bytes in ", path, ", but ",
        ShapeText(array.shape), " and ", array.example_bytes, " before it");
  }
  // What can't be read may say anything of its size.
  if (array.fault.empty()) array.examples += tensor.shape[0];
  array.file_starts.push_back(array.examples);
}

// Takes from the part of `array` that a file has how its numbers are read.
absl::Status TakeType(const TensorInfo& info, ExampleArray& array) {
  const AppendNumbers append = AppendOf(info.type);
  if (info.shape.empty() || append == nullptr ||
      ValuesOf(ShapeOfExample(info)) * BytesOf(info.type) !=
          array.example_bytes) {
    return absl::DataLossError("has changed while it was read");
  }
  if (array.append != nullptr && array.append != append) {
    return absl::InvalidArgumentError(
        absl::StrCat("array \"", array.name, "\" has elements of the type ",
                     NameOf(info.type), ", and others in the files before it"));
  }
  array.append = append;
  array.values = ValuesOf(ShapeOfExample(info));
  return absl::OkStatus();
}

// Reads the part of `array` that the file has, no more than up to `examples`
// in all.
absl::Status ReadPart(TensorReader& reader, size_t tensor, int64_t examples,
                      ExampleArray& array) {
  const TensorInfo& info = reader.tensors()[tensor];
  RETURN_IF_ERROR(TakeType(info, array));
  const auto filled =
      static_cast<int64_t>(array.bytes.size() / array.example_bytes);
  const int64_t count = std::min(info.shape[0], examples - filled);
  const size_t before = array.bytes.size();
  array.bytes.resize(before + count * array.example_bytes);
  return reader.Read(tensor, 0, absl::MakeSpan(array.bytes).subspan(before));
}

// Reads `size` bytes of a tensor, which is compared with its checksum, and
// hands each piece to `visit`.
absl::Status ReadThrough(
    TensorReader& reader, size_t tensor, uint64_t size,
    absl::FunctionRef<absl::Status(absl::string_view piece)> visit) {
  std::string piece;
  for (uint64_t at = 0; at < size; at += piece.size()) {
    constexpr uint64_t kPieceBytes = 1 << 20;
    piece.resize(std::min(size - at, kPieceBytes));
    RETURN_IF_ERROR(reader.Read(tensor, at, absl::MakeSpan(piece)));
    RETURN_IF_ERROR(visit(piece));
  }
  return absl::OkStatus();
}

// Finds the part of `array` that the file has, where it stays on the disk.
absl::Status StorePart(const std::string& path, bool has_checksum,
                       TensorReader& reader, size_t tensor, StoredFiles& files,
                       ExampleArray& array) {
  const TensorInfo& info = reader.tensors()[tensor];
  RETURN_IF_ERROR(TakeType(info, array));
  const uint64_t size = info.shape[0] * array.example_bytes;
  ASSIGN_OR_RETURN(const std::optional<uint64_t> offset,
                   reader.OffsetInFile(tensor));
  if (!offset.has_value()) {
    RETURN_IF_ERROR(ReadThrough(
        reader, tensor, size,
        [&](absl::string_view piece) { return files.Unpack(piece); }));
    if (size > 0) array.stored.push_back(files.TakeUnpacked(path));
    return absl::OkStatus();
  }
  // Opened first, so that what is checked is what will be read.
  ASSIGN_OR_RETURN(StoredFile file, files.OpenPlain(path));
  if (has_checksum) {
    RETURN_IF_ERROR(ReadThrough(reader, tensor, size, [](absl::string_view) {
      return absl::OkStatus();
    }));
  }
  if (*offset > file.size() || size > file.size() - *offset) {
    return absl::DataLossError("has changed while it was read");
  }
  array.stored.push_back(StoredFile::Part(std::move(file), *offset, size));
  return absl::OkStatus();
}

}  // namespace

const ListedArray* ArrayFiles::Find(const std::string& name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &arrays_[place->second];
}

ListedArray& ArrayFiles::Add(ListedArray array) {
  places_.emplace(array.name, arrays_.size());
  return arrays_.emplace_back(std::move(array));
}

absl::Status ArrayFiles::AddArchives(const job::ArrayDataset& dataset,
                                     const std::string& data_dir) {
  const std::vector<std::string> patterns(dataset.file().begin(),
                                          dataset.file().end());
  ASSIGN_OR_RETURN(const FoundFiles found,
                   FindFiles(data_dir, patterns, "array.file"));
  const std::vector<std::string>& paths = found.paths;
  RETURN_IF_ERROR(BringFiles(paths));
  std::map<std::string, size_t> files_of;  // number of files that have it
  for (size_t i = 0; i < paths.size(); ++i) {
    ASSIGN_OR_RETURN(const auto reader, OpenFile(paths[i], ""));
    files_.push_back({.path = paths[i]});
    for (const TensorInfo& tensor : reader->tensors()) {
      if (tensor.shape.empty()) continue;
      ++files_of[tensor.name];
      const auto known = places_.find(tensor.name);
      AddFile(paths[i], tensor,
              known == places_.end() ? Add(Described(tensor))
                                     : arrays_[known->second]);
    }
  }
  for (ListedArray& array : arrays_) {
    if (files_of[array.name] < paths.size() && array.fault.empty()) {
      array.fault = absl::StrCat("is in ", files_of[array.name], " of the ",
                                 paths.size(), " files of array.file");
    }
  }
  return absl::OkStatus();
}

absl::Status ArrayFiles::AddNamed(const job::NamedArray& array,
                                  const std::string& data_dir) {
  if (array.name().empty()) {
    return absl::InvalidArgumentError("array.array.name is not set");
  }
  if (Find(array.name()) != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("two arrays are called \"", array.name(),
                     "\"; give one of array.array another name"));
  }
  ASSIGN_OR_RETURN(const FoundFiles found,
                   FindFiles(data_dir, {array.file()}, "array.array.file"));
  RETURN_IF_ERROR(BringFiles(found.paths));
  ListedArray listed;
  for (const std::string& path : found.paths) {
    ASSIGN_OR_RETURN(const auto reader, OpenFile(path, array.name()));
    const TensorInfo& tensor = reader->tensors().front();
    if (tensor.shape.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": is one number; its examples lie along a first axis"));
    }
    files_.push_back({.path = path, .name = array.name()});
    if (listed.name.empty()) listed = Described(tensor);
    AddFile(path, tensor, listed);
  }
  Add(std::move(listed));
  return absl::OkStatus();
}

absl::StatusOr<ArrayFiles> ArrayFiles::Open(const job::ArrayDataset& dataset,
                                            const std::string& data_dir) {
  ArrayFiles files;
  if (!dataset.file().empty() || dataset.array().empty()) {
    RETURN_IF_ERROR(files.AddArchives(dataset, data_dir));
  }
  for (const job::NamedArray& array : dataset.array()) {
    RETURN_IF_ERROR(files.AddNamed(array, data_dir));
  }
  if (!files.arrays_.empty()) return files;
  return absl::InvalidArgumentError(
      absl::StrCat(files.first(), ": has no array with an axis of examples"));
}

std::vector<ExampleArray> ArrayFiles::Named(
    const std::vector<std::string>& names) const {
  std::vector<ExampleArray> arrays;
  for (const std::string& name : names) {
    const ListedArray* const listed = Find(name);
    CHECK(listed != nullptr && listed->fault.empty()) << name;
    ExampleArray& array = arrays.emplace_back();
    array.name = name;
    array.example_bytes = listed->example_bytes;
  }
  return arrays;
}

absl::Status ArrayFiles::ForEachPart(std::vector<ExampleArray>& arrays,
                                     VisitPart visit) const {
  for (const File& file : files_) {
    std::unique_ptr<TensorReader> reader;
    for (ExampleArray& array : arrays) {
      if (!file.name.empty() && file.name != array.name) continue;
      if (reader == nullptr) {
        ASSIGN_OR_RETURN(reader, OpenFile(file.path, file.name));
      }
      for (size_t i = 0; i < reader->tensors().size(); ++i) {
        if (reader->tensors()[i].name != array.name) continue;
        RETURN_IF_ERROR(visit(file, *reader, i, array)) << file.path;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ArrayFiles::HasChanged(const std::string& name) const {
  return absl::DataLossError(absl::StrCat(first(), ": array \"", name,
                                          "\" has changed while it was read"));
}

absl::StatusOr<std::vector<ExampleArray>> ArrayFiles::Read(
    const std::vector<std::string>& names, int64_t examples) const {
  std::vector<ExampleArray> arrays = Named(names);
  for (ExampleArray& array : arrays) {
    CHECK_GE(Find(array.name)->examples, examples) << array.name;
    array.bytes.reserve(examples * array.example_bytes);
  }
  RETURN_IF_ERROR(
      ForEachPart(arrays,
                  [examples](const File&, TensorReader& reader, size_t tensor,
                             ExampleArray& array) -> absl::Status {
                    if (array.bytes.size() == examples * array.example_bytes) {
                      return absl::OkStatus();
                    }
                    return ReadPart(reader, tensor, examples, array);
                  }));
  for (const ExampleArray& array : arrays) {
    if (array.bytes.size() < examples * array.example_bytes) {
      return HasChanged(array.name);
    }
  }
  return arrays;
}

absl::StatusOr<std::vector<ExampleArray>> ArrayFiles::Store(
    const std::vector<std::string>& names) const {
  std::vector<ExampleArray> arrays = Named(names);
  StoredFiles files;
  RETURN_IF_ERROR(
      ForEachPart(arrays, [&files](const File& file, TensorReader& reader,
                                   size_t tensor, ExampleArray& array) {
        return StorePart(file.path, /*has_checksum=*/file.name.empty(), reader,
                         tensor, files, array);
      }));
  for (const ExampleArray& array : arrays) {
    uint64_t bytes = 0;
    for (const StoredFile& file : array.stored) bytes += file.size();
    if (bytes != Find(array.name)->examples * array.example_bytes) {
      return HasChanged(array.name);
    }
  }
  return arrays;
}

}  // namespace parasol
