#include "deploy/tool/prediction_writer.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "absl/base/casts.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
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

// How a line of text begins, ends, and has a number that is not finite.
struct LineForm {
  std::string begin = {};
  std::string end = {};
  std::string not_finite = {};  // empty: "nan", "inf", "-inf"
  // What is between each number and the one before it.
  std::vector<std::string> between = {};
};

LineForm CsvForm(int64_t width) {
  return {.end = "\n", .between = std::vector<std::string>(width, ",")};
}

// An array, or an object of one array for each output.
LineForm JsonForm(int64_t width, const std::vector<PredictedOutput>& outputs) {
  LineForm form = {.begin = "[",
                   .end = "]\n",
                   .not_finite = "null",
                   .between = std::vector<std::string>(width, ",")};
  size_t next = 0;
  for (const PredictedOutput& output : outputs) {
    const std::string key = absl::StrCat("\"", output.name, "\":[");
    if (next == 0) {
      form.begin = absl::StrCat("{", key);
    } else {
      form.between[next] = absl::StrCat("],", key);
    }
    next += output.width;
  }
  if (!outputs.empty()) form.end = "]}\n";
  return form;
}

// The names of the columns.
std::string CsvHeader(const std::vector<PredictedOutput>& outputs) {
  std::vector<std::string> names;
  for (const PredictedOutput& output : outputs) {
    for (int64_t i = 0; i < output.width; ++i) {
      names.push_back(output.width == 1 ? output.name
                                        : absl::StrCat(output.name, "_", i));
    }
  }
  return absl::StrCat(absl::StrJoin(names, ","), "\n");
}

class LineWriter : public PredictionWriter {
 public:
  LineWriter(StagedFile file, int64_t width, LineForm form)
      : file_(std::move(file)),
        width_(static_cast<size_t>(width)),
        form_(std::move(form)) {}

  absl::Status WriteHeader(const std::string& line) {
    return file_.Append(line);
  }

  absl::Status Append(absl::Span<const float> outputs) override {
    text_.clear();
    for (size_t first = 0; first < outputs.size(); first += width_) {
      absl::StrAppend(&text_, form_.begin);
      for (size_t i = 0; i < width_; ++i) {
        if (i > 0) text_ += form_.between[i];
        AppendOutput(outputs[first + i]);
      }
      absl::StrAppend(&text_, form_.end);
    }
    return file_.Append(text_);
  }

  absl::Status Finish() override { return file_.Commit(); }

 private:
  void AppendOutput(float value) {
    if (!std::isfinite(value) && !form_.not_finite.empty()) {
      absl::StrAppend(&text_, form_.not_finite);
    } else {
      AppendNumber(value, text_);
    }
  }

  StagedFile file_;
  const size_t width_;
  const LineForm form_;
  std::string text_;  // kept for its memory
};

class NpyWriter : public PredictionWriter {
 public:
  NpyWriter(StagedFile file, int64_t width)
      : file_(std::move(file)), width_(width) {}

  // The number of examples is not known yet.
  absl::Status WriteHeader() { return file_.Append(Header(0)); }

  absl::Status Append(absl::Span<const float> outputs) override {
    elements_ += static_cast<int64_t>(outputs.size());
    return file_.Append(
        absl::string_view(reinterpret_cast<const char*>(outputs.data()),
                          outputs.size() * sizeof(float)));
  }

  absl::Status Finish() override {
    RETURN_IF_ERROR(file_.Overwrite(0, Header(elements_ / width_)));
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
  int64_t elements_ = 0;
};

// tf.Example { features { feature { key: "outputs" value { float_list {
// value: … } } } … } }, in TFRecord's frames (ml/input/format/tfrecord_set.h).
class TfRecordWriter : public PredictionWriter {
 public:
  TfRecordWriter(StagedFile file, int64_t width,
                 std::vector<PredictedOutput> outputs)
      : file_(std::move(file)),
        width_(static_cast<size_t>(width)),
        outputs_(std::move(outputs)) {
    if (outputs_.empty()) outputs_ = {{"outputs", width}};
  }

  absl::Status Append(absl::Span<const float> outputs) override {
    bytes_.clear();
    for (size_t first = 0; first < outputs.size(); first += width_) {
      AppendRecord(Example(outputs.subspan(first, width_)));
    }
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

  static std::string Entry(const std::string& name,
                           absl::Span<const float> values) {
    std::string packed;
    for (const float value : values) {
      AppendLittleEndian(absl::bit_cast<uint32_t>(value), sizeof(float),
                         packed);
    }
    constexpr int kFloatList = 2;
    const std::string feature = Field(kFloatList, Field(1, packed));
    return Field(1, Field(1, name) + Field(2, feature));
  }

  std::string Example(absl::Span<const float> values) const {
    std::string features;
    for (const PredictedOutput& output : outputs_) {
      features += Entry(output.name, values.subspan(0, output.width));
      values.remove_prefix(output.width);
    }
    return Field(1, features);
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
  const size_t width_;
  std::vector<PredictedOutput> outputs_;
  std::string bytes_;  // kept for its memory
};

}  // namespace

absl::StatusOr<std::unique_ptr<PredictionWriter>> PredictionWriter::Create(
    const std::string& path, int64_t width,
    const std::vector<PredictedOutput>& outputs, bool is_first) {
  const bool is_npy = absl::EndsWith(path, ".npy");
  const bool is_json = absl::EndsWith(path, ".jsonl");
  const bool is_tfrecord = absl::EndsWith(path, ".tfrecord");
  if (!is_npy && !is_json && !is_tfrecord && !absl::EndsWith(path, ".csv")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--output=", path, ": must end with .csv, .jsonl, .npy or .tfrecord"));
  }
  ASSIGN_OR_RETURN(StagedFile file, StagedFile::Create(path));
  if (is_tfrecord) {
    return std::make_unique<TfRecordWriter>(std::move(file), width, outputs);
  }
  if (!is_npy) {
    auto writer = std::make_unique<LineWriter>(
        std::move(file), width,
        is_json ? JsonForm(width, outputs) : CsvForm(width));
    if (!is_json && !outputs.empty() && is_first) {
      RETURN_IF_ERROR(writer->WriteHeader(CsvHeader(outputs)));
    }
    return writer;
  }
  auto writer = std::make_unique<NpyWriter>(std::move(file), width);
  RETURN_IF_ERROR(writer->WriteHeader());
  return writer;
}

}  // namespace parasol
