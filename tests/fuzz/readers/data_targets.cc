#include "tests/fuzz/readers/data_targets.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "google/protobuf/text_format.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/testing/arrow_environment.h"
#include "ml/input/testing/tf_example_writer.h"
#include "proto/job.pb.h"
#include "storage/tensor_files/npy_header.h"
#include "storage/tensor_files/npz_writer.h"
#include "tests/fuzz/readers/scratch_folder.h"

namespace parasol {
namespace {

// An epoch of a small file has fewer.
constexpr int kMaxBatches = 100'000;
constexpr char kColumnInputs[] =
    "input { name: 'a' dense { shape: 1 } } "
    "input { name: 'c' ids { column { name: 'c' hash { buckets: 7 } } } }";
constexpr char kImage[] = "input_shape: [3, 3]";

template <typename Message>
Message Parsed(const std::string& text) {
  Message message;
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

// A data set whose file is the input.
struct DataFormat {
  std::string name;
  std::string dataset;  // reads the file "data"
  std::string model;
  LabelForm label = {};
  std::vector<std::string> seeds = {};
};

void CheckBatch(const Batch& batch) {
  CHECK_GT(batch.size, 0);
  for (const DenseFeature& feature : batch.dense) {
    size_t elements = batch.size;
    for (const int64_t axis : feature.shape) elements *= axis;
    CHECK_EQ(feature.values.size(), elements);
  }
  for (const IdFeature& feature : batch.ids) {
    CHECK(feature.offsets.size() == static_cast<size_t>(batch.size) + 1);
    CHECK(static_cast<size_t>(feature.offsets.back()) == feature.ids.size());
    CHECK(feature.weights.empty() ||
          feature.weights.size() == feature.ids.size());
  }
  CHECK_EQ(batch.labels.size(), static_cast<size_t>(batch.size));
}

void FeedData(const DataFormat& format, absl::string_view input) {
  static const ScratchFolder folder;
  if (input.empty()) return;
  folder.Write("data", input.substr(1));
  folder.Write("labels", IdxLabelsFile({0, 1, 2, 3, 4, 5, 6, 7}));
  const bool skips = input[0] % 2 != 0;
  const auto dataset = Parsed<job::Dataset>(absl::StrCat(
      "batch_size: 3 decode_threads: 1 on_corrupt: ", skips ? "SKIP " : "STOP ",
      format.dataset));
  const auto inputs =
      ModelInputsOf(Parsed<job::Model>(format.model), format.label);
  CHECK(inputs.ok()) << inputs.status();
  const auto pipeline =
      InputPipeline::Open(dataset, *inputs, {.data_dir = folder.path()});
  if (!pipeline.ok()) return;
  for (int i = 0; i < kMaxBatches; ++i) {
    const auto batch = (*pipeline)->Next();
    if (!batch.ok() || *batch == nullptr) return;
    CheckBatch(**batch);
  }
  LOG(FATAL) << "one epoch of " << input.size() << " bytes has no end";
}

std::string Examples() {
  std::string records;
  for (int i = 0; i < 4; ++i) {
    records += TfRecord(ExampleOf(RealFeature("a", {1.0f * i}) +
                                  IntegerFeature("y", {i % 2}) +
                                  TextFeature("c", {"x", absl::StrCat(i)})));
  }
  return records;
}

// An archive of arrays.
std::string ArraysFile() {
  const ScratchFolder folder;
  const auto writer =
      NewNpzWriter(folder.path() + "/arrays",
                   {WholeTensor({"a", ElementType::kFloat32, {2, 1}}),
                    WholeTensor({"c", ElementType::kInt64, {2}}),
                    WholeTensor({"y", ElementType::kUint8, {2}})});
  CHECK(writer.ok()) << writer.status();
  for (const size_t bytes : {2 * sizeof(float), 2 * sizeof(int64_t), 2ul}) {
    CHECK((*writer)->Append(std::string(bytes, '\1')).ok());
  }
  CHECK((*writer)->Finish().ok());
  return folder.Read("arrays");
}

// The input is the message, not the record: the checksums are right.
std::string ExampleIn(absl::string_view input) {
  if (input.empty()) return "";
  return absl::StrCat(input.substr(0, 1), TfRecord(input.substr(1)));
}

// A file of another writer.
std::string GoldenFile(const std::string& name) {
  std::ifstream file("ml/input/arrow/testdata/" + name, std::ios::binary);
  CHECK(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<DataFormat> DataFormats() {
  const LabelForm classes = {.kind = LabelForm::Kind::kClass, .classes = 10};
  const std::string csv = "a,c,y\n1.5,\"q\"\"\n\",1\n,x,0\n-2e3,,1\n";
  const std::string criteo = absl::StrCat(
      "1\t1\t2\t\t-4\t5\t6\t7\t8\t9\t10\t11\t12\t13\t",
      "05db9164\t08d6d899\t9143c832\tf56b7dd5\t25c83c98\t7e0ccccf",
      "\tdf5c2d18\t0b153874\ta73ee510\t8f48ce11\ta7b606c4",
      "\tae1bb660\teae197fd\tb28479f6\tbfef54b3\tbad5ee18",
      "\te5ba7672\t87c6f83c\t\t\t0429f84b\t\t3a171ecb\tc0d61a5c", "\t\t\n");
  return {
      {"csv",
       "csv { file: 'data' label { column: 'y' } }",
       kColumnInputs,
       {},
       {csv}},
      {"tsv",
       "csv { file: 'data' delimiter: '\\t' column: ['a', 'c', 'y'] "
       "label { column: 'y' positive: 'yes' } }",
       kColumnInputs,
       {},
       {"1\tx\tyes\n\t\"\"\tno\r\n"}},
      {"libsvm",
       "libsvm { file: 'data' }",
       "input { name: 'a' dense { shape: 3 } } input { name: 'c' ids {} }",
       {},
       {"1 1:0.5 3:2\n0 2:-1e-3 # a remark\n\n-1\n"}},
      {"idx",
       "idx { images: 'data' labels: 'labels' }",
       kImage,
       classes,
       {IdxImagesFile({.count = 8,
                       .height = 3,
                       .width = 3,
                       .pixels = std::vector<uint8_t>(72, 7)})}},
      {"cifar",
       "cifar { file: 'data' }",
       "input_shape: [32, 32, 3]",
       classes,
       {std::string(2 * 3073, '\3')}},
      {"tfrecord",
       "tfrecord { file: 'data' label: 'y' }",
       kColumnInputs,
       {},
       {Examples()}},
      {"criteo",
       "criteo { file: 'data' }",
       "input { name: 'integers' dense { column { name: 'I*' default_value: 0 }"
       " } } input { name: 'C1' ids { column { name: 'C1' hash { buckets: 9 } }"
       " } }",
       {},
       {criteo}},
      {"ratings",
       "ratings { file: 'data' }",
       "input { name: 'user' ids {} } input { name: 'item' ids {} }",
       {},
       {"1::2::3::4\n5::6::0.5::8\n"}},
      {"array",
       "array { file: 'data' label: 'y' }",
       kColumnInputs,
       {},
       {ArraysFile()}},
      {"npy",
       "array { array { name: 'a' file: 'data' } label: 'a' }",
       "input { name: 'a' dense { shape: 1 } }",
       {},
       {NpyHeader({"a", ElementType::kFloat32, {2}}) + "12345678"}},
      // Refused at once where Apache Arrow is not installed.
      {"parquet",
       "parquet { file: 'data' label { column: 'y' } }",
       kColumnInputs,
       {},
       {GoldenFile("seed.parquet"), GoldenFile("seed.arrow")}},
      {"gzip",
       "csv { file: 'data' label { column: 'y' } }",
       kColumnInputs,
       {},
       {Gzip(csv), Gzip(csv) + Gzip(csv)}},
  };
}

std::vector<std::string> Seeds(const DataFormat& format) {
  std::vector<std::string> seeds;
  for (const std::string& seed : format.seeds) {
    for (const char* policy : {"0", "1"}) seeds.push_back(policy + seed);
  }
  return seeds;
}

}  // namespace

std::vector<FuzzTarget> DataTargets() {
  std::vector<FuzzTarget> targets;
  for (const DataFormat& format : DataFormats()) {
    if (format.name == "parquet") {
      const std::string lacks = ArrowLacks();
      if (!lacks.empty()) LOG(WARNING) << lacks;
    }
    targets.push_back(
        {format.name,
         [format](absl::string_view input) { FeedData(format, input); },
         [format] { return Seeds(format); }});
    if (format.name != "tfrecord") continue;
    targets.push_back(
        {"tf_example",
         [format](absl::string_view input) {
           FeedData(format, ExampleIn(input));
         },
         [] {
           return std::vector<std::string>{absl::StrCat(
               "0", ExampleOf(RealFeature("a", {1}) + IntegerFeature("y", {1}) +
                              TextFeature("c", {"x"})))};
         }});
  }
  return targets;
}

}  // namespace parasol
