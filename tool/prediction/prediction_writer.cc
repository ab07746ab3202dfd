#include "tool/prediction/prediction_writer.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "absl/base/casts.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "storage/tensor_files/npy_header.h"
#include "storage/tensor_files/staged_file.h"

namespace parasol {
namespace {

// The longest text of a float32 that is written here.
constexpr size_t kNumberBytes = 32;
// Room for the header of an array with any number of examples.
constexpr size_t kNpyHeaderBytes = 192;

// As many digits as it takes to read the same bits back.
void AppendNumber(float value, std::string& text) {
  char digits[kNumberBytes];
  const auto end = std::to_chars(digits, digits + kNumberBytes, value).ptr;
  text.append(digits, end);
}

// A text as a value of RFC 4180, in quotes where it needs them.
void AppendCsvText(absl::string_view text, std::string& line) {
  const bool has_blanks = !text.empty() && (absl::ascii_isblank(text.front()) ||
                                            absl::ascii_isblank(text.back()));
  if (!has_blanks && text.find_first_of(",\"\r\n") == text.npos) {
    absl::StrAppend(&line, text);
    return;
  }
  absl::StrAppend(&line, "\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}),
                  "\"");
}

class CsvWriter : public PredictionWriter {
 public:
  CsvWriter(StagedFile file, std::vector<PredictionField> fields)
      : file_(std::move(file)), fields_(std::move(fields)) {}

  // Writes the names of the columns.
  absl::Status WriteHeader() {
    std::string line;
    for (const PredictionField& field : fields_) {
      for (const std::string& column : field.columns) {
        if (!line.empty()) line += ',';
        AppendCsvText(column, line);
      }
    }
    return file_.Append(line + "\n");
  }

  absl::Status Append(absl::Span<const PredictionValue> row) override {
    line_.clear();
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line_ += ',';
      if (fields_[i].kind == PredictionField::Kind::kText) {
        AppendCsvText(row[i].text, line_);
        continue;
      }
      for (size_t j = 0; j < row[i].numbers.size(); ++j) {
        if (j > 0) line_ += ',';
        AppendNumber(row[i].numbers[j], line_);
      }
    }
    line_ += '\n';
    return file_.Append(line_);
  }

  absl::Status Finish() override { return file_.Commit(); }

 private:
  StagedFile file_;
  const std::vector<PredictionField> fields_;
  std::string line_;  // kept for its memory
};

// Bytes that are not UTF-8 are replaced: they come from the data.
std::string JsonText(absl::string_view text) {
  using Json = nlohmann::json;
  return Json(std::string(text))
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

class JsonWriter : public PredictionWriter {
 public:
  JsonWriter(StagedFile file, std::vector<PredictionField> fields)
      : file_(std::move(file)), fields_(std::move(fields)) {
    for (const PredictionField& field : fields_) {
      keys_.push_back(
          absl::StrCat(keys_.empty() ? "{" : ",", JsonText(field.name), ":"));
    }
  }

  absl::Status Append(absl::Span<const PredictionValue> row) override {
    line_.clear();
    for (size_t i = 0; i < row.size(); ++i) {
      line_ += keys_[i];
      AppendValue(fields_[i].kind, row[i]);
    }
    line_ += "}\n";
    return file_.Append(line_);
  }

  absl::Status Finish() override { return file_.Commit(); }

 private:
  void AppendValue(PredictionField::Kind kind, const PredictionValue& value) {
    if (kind == PredictionField::Kind::kText) {
      line_ += value.text.empty() ? "null" : JsonText(value.text);
      return;
    }
    const bool is_list = kind == PredictionField::Kind::kNumbers;
    if (is_list) line_ += '[';
    for (size_t i = 0; i < value.numbers.size(); ++i) {
      if (i > 0) line_ += ',';
      if (std::isfinite(value.numbers[i])) {
        AppendNumber(value.numbers[i], line_);
      } else {
        line_ += "null";
      }
    }
    if (is_list) line_ += ']';
  }

  StagedFile file_;
  const std::vector<PredictionField> fields_;
  std::vector<std::string> keys_;  // each with what is in front of it
  std::string line_;               // kept for its memory
};

class NpyWriter : public PredictionWriter {
 public:
  NpyWriter(StagedFile file, int64_t width)
      : file_(std::move(file)), width_(width) {}

  // The number of examples is not known yet.
  absl::Status WriteHeader() { return file_.Append(Header(0)); }

  absl::Status Append(absl::Span<const PredictionValue> row) override {
    ++examples_;
    const absl::Span<const float> numbers = row.front().numbers;
    return file_.Append(
        absl::string_view(reinterpret_cast<const char*>(numbers.data()),
                          numbers.size() * sizeof(float)));
  }

  absl::Status Finish() override {
    RETURN_IF_ERROR(file_.Overwrite(0, Header(examples_)));
    return file_.Commit();
  }

 private:
  std::string Header(int64_t examples) const {
    return NpyHeader(
        {.type = ElementType::kFloat32, .shape = {examples, width_}},
        kNpyHeaderBytes);
  }

  StagedFile file_;
  const int64_t width_;
  int64_t examples_ = 0;
};

// tf.Example { features { feature { key: "class" value { bytes_list {
// value: … } } } … } }, in TFRecord's frames (ml/input/format/tfrecord_set.h).
class TfRecordWriter : public PredictionWriter {
 public:
  TfRecordWriter(StagedFile file, std::vector<PredictionField> fields)
      : file_(std::move(file)), fields_(std::move(fields)) {}

  absl::Status Append(absl::Span<const PredictionValue> row) override {
    std::string features;
    for (size_t i = 0; i < row.size(); ++i) {
      const bool is_text = fields_[i].kind == PredictionField::Kind::kText;
      features += Entry(fields_[i].name, is_text ? BytesList(row[i].text)
                                                 : FloatList(row[i].numbers));
    }
    bytes_.clear();
    AppendRecord(Field(1, features));
    return file_.Append(bytes_);
  }

  absl::Status Finish() override { return file_.Commit(); }

 private:
  static void AppendVarint(uint64_t number, std::string& bytes) {
    for (; number >= 0x80; number >>= 7) {
      bytes += static_cast<char>(number | 0x80);
    }
    bytes += static_cast<char>(number);
  }

  static void AppendLittleEndian(uint64_t number, int size,
                                 std::string& bytes) {
    for (int i = 0; i < size; ++i, number >>= 8) {
      bytes += static_cast<char>(number);
    }
  }

  // A field whose value is bytes.
  static std::string Field(int number, absl::string_view value) {
    constexpr int kBytes = 2;
    std::string bytes;
    AppendVarint(static_cast<uint64_t>(number) << 3 | kBytes, bytes);
    AppendVarint(value.size(), bytes);
    return absl::StrCat(bytes, value);
  }

  // A feature of a text; of none: a list without values.
  static std::string BytesList(absl::string_view text) {
    constexpr int kBytesList = 1;
    return Field(kBytesList, text.empty() ? "" : Field(1, text));
  }

  static std::string FloatList(absl::Span<const float> values) {
    std::string packed;
    for (const float value : values) {
      AppendLittleEndian(absl::bit_cast<uint32_t>(value), sizeof(float),
                         packed);
    }
    constexpr int kFloatList = 2;
    return Field(kFloatList, Field(1, packed));
  }

  static std::string Entry(const std::string& name, absl::string_view feature) {
    return Field(1, Field(1, name) + Field(2, feature));
  }

  void AppendRecord(absl::string_view example) {
    std::string length;
    AppendLittleEndian(example.size(), sizeof(uint64_t), length);
    bytes_ += length;
    AppendLittleEndian(MaskCrc(Crc32cOf(length)), sizeof(uint32_t), bytes_);
    absl::StrAppend(&bytes_, example);
    AppendLittleEndian(MaskCrc(Crc32cOf(example)), sizeof(uint32_t), bytes_);
  }

  StagedFile file_;
  const std::vector<PredictionField> fields_;
  std::string bytes_;  // kept for its memory
};

}  // namespace

absl::StatusOr<PredictionFormat> PredictionFormatOf(const std::string& path) {
  if (absl::EndsWith(path, ".csv")) return PredictionFormat::kCsv;
  if (absl::EndsWith(path, ".jsonl")) return PredictionFormat::kJsonLines;
  if (absl::EndsWith(path, ".npy")) return PredictionFormat::kNpy;
  if (absl::EndsWith(path, ".tfrecord")) return PredictionFormat::kTfRecord;
  return absl::InvalidArgumentError(absl::StrCat(
      "--output=", path, ": must end with .csv, .jsonl, .npy or .tfrecord"));
}

absl::StatusOr<std::unique_ptr<PredictionWriter>> PredictionWriter::Create(
    const std::string& path, const std::vector<PredictionField>& fields,
    bool is_first) {
  ASSIGN_OR_RETURN(const PredictionFormat format, PredictionFormatOf(path));
  ASSIGN_OR_RETURN(StagedFile file, StagedFile::Create(path));
  if (format == PredictionFormat::kTfRecord) {
    return std::make_unique<TfRecordWriter>(std::move(file), fields);
  }
  if (format == PredictionFormat::kJsonLines) {
    return std::make_unique<JsonWriter>(std::move(file), fields);
  }
  if (format == PredictionFormat::kCsv) {
    auto writer = std::make_unique<CsvWriter>(std::move(file), fields);
    if (is_first) {
      RETURN_IF_ERROR(writer->WriteHeader());
    }
    return writer;
  }
  auto writer = std::make_unique<NpyWriter>(
      std::move(file), static_cast<int64_t>(fields.front().columns.size()));
  RETURN_IF_ERROR(writer->WriteHeader());
  return writer;
}

}  // namespace parasol
