#ifndef PARASOL_ML_INPUT_TESTING_SAMPLE_FORMATS_H_
#define PARASOL_ML_INPUT_TESTING_SAMPLE_FORMATS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ml/input/feature/batch.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/tf_example_writer.h"
#include "storage/tensor_files/npy_header.h"

// Small data sets of all formats that need no other library, and what a reader
// gives of them.
namespace parasol {

// A format's data set.
struct SampleFormat {
  std::string name;
  std::vector<std::string> files;  // Bytes of the files "f0", "f1", …
  std::string dataset;             // Settings that name "f?"
  std::string model;
};

inline constexpr char kColumnsModel[] =
    "loss { binary_crossentropy {} } input { name: 'a' dense { shape: 1 } } "
    "input { name: 'c' ids { column { name: 'c' hash {} } } }";

inline SampleFormat CsvSample() {
  std::string first = "\xef\xbb\xbf\n \r\na,c,y\r\n";
  std::string second = "a,c,y\n";
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&first, i, ".5,\"q\"\"", i, "\n,\n\",", i % 2,
                    i % 3 == 0 ? "\n\n" : "\r\n");
    absl::StrAppend(&second, i, ",", std::string(i % 70, 'x'), ",1\n");
  }
  second.pop_back();  // no final newline
  return {.name = "csv",
          .files = {first, second, "a,c,y\n"},
          .dataset = "csv { file: 'f?' label { column: 'y' } }",
          .model = kColumnsModel};
}

inline SampleFormat CriteoSample() {
  std::string file;
  for (int i = 0; i < 150; ++i) {
    absl::StrAppend(&file, i % 2);
    for (int c = 0; c < 39; ++c) {
      absl::StrAppend(&file, "\t", c % 7 == 0 ? "" : absl::StrCat(i * c));
    }
    file += "\n";
  }
  return {.name = "criteo",
          .files = {file, "", file.substr(0, file.find('\n'))},
          .dataset = "criteo { file: 'f?' }",
          .model =
              "loss { binary_crossentropy {} } input { name: 'n' dense { "
              "column { name: 'I2' default_value: 0 } column { name: 'I13' "
              "default_value: 0 } } } input { name: 'c' ids { column { name: "
              "'C1' hash {} } column { name: 'C26' hash {} } } }"};
}

inline SampleFormat RatingsSample() {
  std::string file;
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&file, i, "::", i * 7, "::", i % 5, "::", 1000 + i, "\n");
  }
  return {.name = "ratings",
          .files = {file},
          .dataset = "ratings { file: 'f?' }",
          .model =
              "loss { mean_squared_error {} } input { name: 'user' ids {} "
              "}"};
}

inline SampleFormat LibsvmSample() {
  std::string file = "# a comment\n";
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&file, i % 2, " 1:", i, " 3:0.25 # more\n");
    if (i % 50 == 0) {
      absl::StrAppend(&file, "#", std::string(900, 'x'), "\n\n");
    }
  }
  return {.name = "libsvm",
          .files = {file, "# nothing\n", file},
          .dataset = "libsvm { file: 'f?' }",
          .model =
              "loss { binary_crossentropy {} } input { name: 'a' dense { "
              "shape: 3 } } input { name: 'c' ids {} }"};
}

inline SampleFormat TfRecordsSample() {
  std::string file;
  for (int i = 0; i < 120; ++i) {
    // Some records are larger than a block, some than the cache.
    const size_t size = i % 40 == 0 ? 2000 : i % 10 == 0 ? 300 : 5;
    file += TfRecord(
        ExampleOf(RealFeature("a", {1.0f * i}) + IntegerFeature("y", {i % 2}) +
                  TextFeature("c", {std::string(size, 'x'), absl::StrCat(i)})));
  }
  return {.name = "tfrecord",
          .files = {file, "", file},
          .dataset = "tfrecord { file: 'f?' label: 'y' }",
          .model = kColumnsModel};
}

inline SampleFormat CifarSample() {
  std::string file;
  for (int i = 0; i < 30; ++i) {
    file += std::string(1, static_cast<char>(i % 10)) +
            std::string(3072, static_cast<char>(i));
  }
  return {.name = "cifar",
          .files = {file, file.substr(0, 3 * 3073)},
          .dataset =
              "cifar { file: 'f?' } image { random_crop_padding: 2 "
              "random_flip: true }",
          .model = "input_shape: [32, 32, 3]"};
}

inline SampleFormat IdxSample() {
  std::vector<uint8_t> labels(200);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = i % 10;
  return {.name = "idx",
          .files = {IdxImagesFile(CountingImages(200, 5, 3)),
                    IdxLabelsFile(labels)},
          .dataset = "idx { images: 'f0' labels: 'f1' }",
          .model = "input_shape: [5, 3]"};
}

// Returns a ZIP archive, as numpy.savez or savez_compressed writes it.
inline std::string Zip(
    const std::vector<std::pair<std::string, std::string>>& members,
    bool is_packed) {
  std::string file;
  std::string directory;
  const auto number = LittleEndianBytes;
  for (const auto& [name, bytes] : members) {
    // Gzip is a header of ten bytes, deflated bytes, crc32 and size.
    const std::string gzip = Gzip(bytes);
    const std::string stored =
        is_packed ? gzip.substr(10, gzip.size() - 18) : bytes;
    const std::string common = absl::StrCat(
        number(20, 2), number(0, 2), number(is_packed ? 8 : 0, 2), number(0, 4),
        gzip.substr(gzip.size() - 8, 4), number(stored.size(), 4),
        number(bytes.size(), 4), number(name.size(), 2), number(0, 2));
    absl::StrAppend(&directory, number(0x02014b50, 4), number(20, 2), common,
                    number(0, 10), number(file.size(), 4), name);
    absl::StrAppend(&file, number(0x04034b50, 4), common, name, stored);
  }
  const std::string count = number(members.size(), 2);
  return absl::StrCat(file, directory, number(0x06054b50, 4), number(0, 4),
                      count, count, number(directory.size(), 4),
                      number(file.size(), 4), number(0, 2));
}

template <typename T>
inline std::string Npy(ElementType type, const std::vector<int64_t>& shape,
                       const std::vector<T>& values) {
  return NpyHeader({"", type, shape}) +
         std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

inline std::string NpyOfNumbers(int64_t examples) {
  std::vector<float> numbers(examples * 3);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = .5f * i;
  return Npy(ElementType::kFloat32, {examples, 3}, numbers);
}

inline std::string NpyOfLabels(int64_t examples) {
  std::vector<int64_t> labels(examples);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = i % 2;
  return Npy(ElementType::kInt64, {examples}, labels);
}

inline constexpr char kArrayModel[] =
    "loss { binary_crossentropy {} } input { name: 'x' dense { shape: 3 } } "
    "input { name: 'z' ids { column { name: 'z' identity { num_ids: 2 } } } }";

inline SampleFormat NpzSample(bool is_packed) {
  SampleFormat format = {.name = is_packed ? "packed npz" : "npz",
                         .files = {},
                         .dataset = "array { file: 'f?' label: 'y' }",
                         .model = kArrayModel};
  for (const int64_t examples : {150, 1, 70}) {
    format.files.push_back(Zip({{"x.npy", NpyOfNumbers(examples)},
                                {"z.npy", NpyOfLabels(examples)},
                                {"other.npy", NpyOfLabels(3)},
                                {"y.npy", NpyOfLabels(examples)}},
                               is_packed));
  }
  return format;
}

inline SampleFormat NpyFilesSample() {
  return {.name = "npy",
          .files = {NpyOfNumbers(200), NpyOfLabels(200), NpyOfLabels(200)},
          .dataset =
              "array { array { name: 'x' file: 'f0' } array { name: 'y' "
              "file: 'f1' } array { name: 'z' file: 'f2' } label: 'y' }",
          .model = kArrayModel};
}

// Returns sets of all formats, and packed ones of formats that may be packed.
inline std::vector<SampleFormat> SampleFormats() {
  std::vector<SampleFormat> formats = {
      CsvSample(),       CriteoSample(), RatingsSample(), LibsvmSample(),
      TfRecordsSample(), CifarSample(),  IdxSample()};
  const size_t plain = formats.size();
  for (size_t i = 0; i < plain; ++i) {
    SampleFormat packed = formats[i];
    packed.name += ".gz";
    for (std::string& file : packed.files) file = Gzip(file);
    formats.push_back(packed);
  }
  formats.push_back(NpzSample(/*is_packed=*/false));
  formats.push_back(NpzSample(/*is_packed=*/true));
  formats.push_back(NpyFilesSample());
  return formats;
}

inline std::string TextOf(const Batch& batch) {
  std::string text = absl::StrCat(batch.size, ":");
  const auto add = [&text](const auto& values) {
    for (const auto& value : values) absl::StrAppend(&text, value, ",");
    text += ";";
  };
  for (const DenseFeature& feature : batch.dense) add(feature.values);
  for (const IdFeature& feature : batch.ids) {
    add(feature.offsets);
    add(feature.ids);
    add(feature.weights);
  }
  add(batch.labels);
  add(batch.weights);
  return text;
}

// Returns what a reader gives: batches, then how it ends, and what it left out.
inline std::vector<std::string> ReadTexts(InputPipeline& pipeline,
                                          int most_batches) {
  std::vector<std::string> all;
  while (static_cast<int>(all.size()) < most_batches) {
    const auto batch = pipeline.Next();
    if (!batch.ok()) all.push_back(batch.status().ToString());
    if (!batch.ok() || *batch == nullptr) break;
    all.push_back(TextOf(**batch));
  }
  all.push_back(absl::StrCat("skipped: ", pipeline.skipped_records()));
  return all;
}

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_TESTING_SAMPLE_FORMATS_H_
