// Models that leave as ONNX files. With onnxruntime they give the outputs of
// `parasol predict`, and ONNX's own checker takes them (base/testing/python.h).

#include "tool/exchange/onnx/onnx_export.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "base/testing/python.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/idx_writer.h"
#include "proto/onnx.pb.h"
#include "tool/testing/run_tool.h"
#include "tool/testing/trained_job_fixture.h"

namespace parasol {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

constexpr int kPixels = 48;
constexpr int kIdsOfColumn = 20;

// Every kind of layer but custom, and every activation.
constexpr char kLayers[] = R"(
  layer { name: "conv" input: "image"
          conv2d { filters: 5 kernel_size: 3 stride: 2 padding: SAME
                   activation: RELU } }
  layer { name: "bn" batch_normalization { momentum: 0.5 } }
  layer { name: "padded" pad { before: [1, 0, 0] after: [0, 1, 0] } }
  layer { name: "most" max_pool { pool_size: 2 stride: 1 padding: SAME } }
  layer { name: "mean" average_pool { pool_size: 2 padding: SAME } }
  layer { name: "flat" flatten {} }
  layer { name: "normal" layer_normalization {} }
  layer { name: "gelu" dense { units: 6 activation: GELU } }
  layer { name: "dropped" dropout { rate: 0.5 } }
  layer { name: "silu" dense { units: 6 activation: SILU use_bias: false } }
  layer { name: "elu" activation: ELU }
  layer { name: "leaky" activation: LEAKY_RELU }
  layer { name: "softplus" activation: SOFTPLUS }
  layer { name: "tanh" activation: TANH }
  layer { name: "sigmoid" activation: SIGMOID }
  layer { name: "softmax" activation: SOFTMAX }
  layer { name: "channels" input: "most" global_average_pool {} }
  layer { name: "fields" input: "ids" embedding { table: "narrow" } }
  layer { name: "pairs" dot_interaction { self_interaction: true } }
  layer { name: "others" input: "fields" dot_interaction {} }
  layer { name: "products" input: ["fields", "fields"] dot {} }
  layer { name: "products_in_a_row" reshape { shape: [9] } }
  layer { name: "fm" input: "fields" factorization_machine {} }
  layer { name: "row" input: "fields" reshape { shape: [12] } }
  layer { name: "sum" input: "ids"
          embedding_bag { table: "narrow" use_bias: true } }
  layer { name: "average" input: "ids"
          embedding_bag { table: "other" combiner: MEAN } }
  layer { name: "product" input: ["sum", "average"] multiply {} }
  layer { name: "total" input: ["sum", "average", "product"] add {} }
  layer { name: "cosines" input: ["total", "fields"] dot { normalize: true } }
  layer { name: "depthwise" input: "image"
          depthwise_conv2d { kernel_size: 2 depth_multiplier: 2 padding: SAME
                             dilation_rate: 2 activation: TANH } }
  layer { name: "grouped" group_normalization { groups: 3 } }
  layer { name: "separable"
          separable_conv2d { filters: 4 kernel_size: 3 stride: 2
                             padding: SAME } }
  layer { name: "apart" input: "separable"
          conv2d_transpose { filters: 2 kernel_size: 2 stride: 3 } }
  layer { name: "apart_in_a_row" flatten {} }
  layer { name: "larger" input: "separable"
          conv2d_transpose { filters: 4 kernel_size: 3 stride: 2
                             padding: SAME } }
  layer { name: "steps" reshape { shape: [8, 8] } }
  layer { name: "dilated"
          conv1d { filters: 6 kernel_size: 3 padding: CAUSAL
                   dilation_rate: 2 } }
  layer { name: "placed" positional_embedding {} }
  layer { name: "waves" positional_embedding { sinusoidal: true } }
  layer { name: "rms" rms_normalization {} }
  layer { name: "attention"
          multi_head_attention { num_heads: 2 key_dim: 3 causal: true } }
  layer { name: "doubt" conv1d { filters: 1 kernel_size: 1 activation: SIGMOID } }
  layer { name: "mask" reshape { shape: [8] } }
  layer { name: "seen" input: ["attention", "rms", "mask"]
          multi_head_attention { num_heads: 1 key_dim: 4 masked: true
                                 use_bias: false } }
  layer { name: "both_ways"
          lstm { units: 3 bidirectional: CONCAT return_sequences: true } }
  layer { name: "backwards"
          gru { units: 4 go_backwards: true return_sequences: true } }
  layer { name: "merged" gru { units: 3 bidirectional: AVE } }
  layer { name: "last" input: "backwards" lstm { units: 3 use_bias: false } }
  layer { name: "mean_of_seen" input: ["both_ways", "mask"]
          global_average_pool1d {} }
  layer { name: "most_of_seen" input: ["both_ways", "mask"]
          global_max_pool1d {} }
  layer { name: "mean_of_steps" input: "seen" global_average_pool1d {} }
  layer { name: "most_of_steps" input: "backwards" global_max_pool1d {} }
  layer { name: "all" input: ["softmax", "channels", "pairs", "others", "fm",
                              "row", "total", "products_in_a_row", "cosines",
                              "apart_in_a_row", "merged", "last",
                              "mean_of_seen", "most_of_seen", "mean_of_steps",
                              "most_of_steps"] concatenate {} }
  layer { name: "low" input: "all" cross { projection_dim: 2 } }
  layer { name: "crossed" input: ["all", "low"] cross {} }
  layer { name: "logit" dense { units: 1 } }
)";

constexpr char kLibraries[] = "numpy, onnx, onnxruntime";

// Reads the CSV file as the job does, and compares what the ONNX model gives
// with the predictions of `parasol predict`.
constexpr char kCompare[] = R"(
import csv, sys
import numpy as np
import onnx
import onnxruntime as ort

model, data, predicted = sys.argv[1:]
onnx.checker.check_model(model, full_check=True)
rows = list(csv.DictReader(open(data)))
column = lambda name: np.array([float(r[name]) for r in rows], np.float32)
image = np.stack([column('x%d' % i) for i in range(48)], 1)
ids = np.stack([column(name).astype(np.int64) + 21 * i
                for i, name in enumerate('abc')], 1)
session = ort.InferenceSession(model, providers=['CPUExecutionProvider'])
outputs, probabilities = session.run(None, {
    'image': image.reshape(-1, 4, 4, 3), 'ids': ids,
    'ids/weights': np.ones(ids.shape, np.float32)})
want = np.array([float(line) for line in list(open(predicted))[1:]])
assert outputs.shape == (len(want), 1), outputs.shape
error = np.abs(outputs[:, 0] - want) / (1 + np.abs(want))
assert error.max() < 1e-5, error.max()
assert np.allclose(probabilities[:, 0], 1 / (1 + np.exp(-want)), atol=1e-5)
assert np.abs(want).max() > 1e-3
)";

// Compares the fixture's job of named outputs in this way.
constexpr char kCompareNamed[] = R"(
import csv, sys
import numpy as np
import onnx
import onnxruntime as ort

model, data, predicted = sys.argv[1:]
onnx.checker.check_model(model, full_check=True)
rows = list(csv.DictReader(open(data)))
ids = np.array([[int(r['user']), 18 + int(r['item'])] for r in rows])
session = ort.InferenceSession(model, providers=['CPUExecutionProvider'])
rating, kind, shares, likes = session.run(None, {'pair': ids})
want = np.array([list(map(float, r)) for r in list(csv.reader(open(predicted)))[1:]])
got = np.concatenate([rating, kind, likes], 1)
assert got.shape == want.shape, (got.shape, want.shape)
assert (np.abs(got - want) / (1 + np.abs(want))).max() < 1e-5
e = np.exp(want[:, 1:4])
assert np.allclose(shares, e / e.sum(1, keepdims=True), atol=1e-5)
)";

// Pads a job's sequences, with ones as weights where there is an id.
constexpr char kCompareSequences[] = R"(
import csv, sys
import numpy as np
import onnx
import onnxruntime as ort

model, data, predicted = sys.argv[1:]
onnx.checker.check_model(model, full_check=True)
lists = [[int(n) for n in r['seen'].split('|') if n]
         for r in csv.DictReader(open(data))]
ids = np.zeros((len(lists), 4), np.int64)
weights = np.zeros(ids.shape, np.float32)
for i, steps in enumerate(l[-4:] for l in lists):
    ids[i, :len(steps)] = steps
    weights[i, :len(steps)] = 1
session = ort.InferenceSession(model, providers=['CPUExecutionProvider'])
outputs = session.run(['outputs'], {'seen': ids, 'seen/weights': weights})[0]
want = np.array([float(line) for line in list(open(predicted))[1:]])
error = np.abs(outputs[:, 0] - want) / (1 + np.abs(want))
assert error.max() < 1e-5, error.max()
assert np.abs(want).max() > 1e-3
)";

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

onnx::ModelProto ModelAt(const std::string& path) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(ReadAll(path)));
  return model;
}

class OnnxExportTest : public TrainedJobFixture {
 protected:
  // Replaces the fixture's job by one with all layers, over a CSV file.
  void WriteJobOfAllLayers() {
    std::string columns, header;
    for (int i = 0; i < kPixels; ++i) {
      absl::StrAppend(&columns, "column { name: \"x", i, "\" } ");
      absl::StrAppend(&header, "x", i, ",");
    }
    std::string ids;
    for (const char* const name : {"a", "b", "c"}) {
      absl::StrAppend(&ids, "column { name: \"", name,
                      "\" identity { num_ids: ", kIdsOfColumn, " } } ");
    }
    const char* const data =
        "{ csv { file: \"data.csv\" label { column: \"label\" } } "
        "batch_size: 16 }";
    std::ofstream(Path("job.textproto"))
        << "name: \"all\" seed: 5 model { input { name: \"image\" dense { "
        << "shape: [4, 4, 3] " << columns << "} } input { name: \"ids\" ids { "
        << ids << "} }" << kLayers << "loss { binary_crossentropy {} } "
        << "sparse_table { name: \"narrow\" width: 4 } "
        << "sparse_table { name: \"other\" width: 4 } } train " << data
        << " eval " << data << " optimizer { adam { learning_rate: 0.01 } }";
    std::ofstream file(Path("data.csv"));
    file << header << "a,b,c,label\n";
    for (int i = 0; i < kExamples; ++i) {
      for (int j = 0; j < kPixels; ++j) {
        file << (i * 37 + j * 11) % 101 / 50.0 - 1 << ",";
      }
      file << i % kIdsOfColumn << "," << i % 7 << "," << i % 3 << "," << i % 2
           << "\n";
    }
  }

  CompletedProcess Export(const std::string& output) {
    return RunTool(
        {"export", Path("ckpt"), "--format=onnx", "--output=" + Path(output)});
  }
};

TEST_F(OnnxExportTest, EveryValueIsMadeBeforeItIsUsed) {
  WriteJobOfAllLayers();
  Train("ckpt", 5);
  const CompletedProcess run = Export("all.onnx");
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  const onnx::ModelProto model = ModelAt(Path("all.onnx"));
  std::set<std::string> made;
  for (const auto& input : model.graph().input()) made.insert(input.name());
  EXPECT_THAT(made, ElementsAre("ids", "ids/weights", "image"));
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    size_t bytes = tensor.data_type() == onnx::TensorProto::FLOAT ? 4 : 8;
    for (const int64_t size : tensor.dims()) bytes *= size;
    EXPECT_EQ(tensor.raw_data().size(), bytes) << tensor.name();
    EXPECT_TRUE(made.insert(tensor.name()).second) << tensor.name();
  }
  std::set<std::string> ops;
  for (const onnx::NodeProto& node : model.graph().node()) {
    for (const std::string& input : node.input()) {
      EXPECT_TRUE(made.contains(input)) << node.name() << " reads " << input;
    }
    EXPECT_TRUE(made.insert(node.output(0)).second) << node.output(0);
    ops.insert(node.op_type());
  }
  EXPECT_THAT(ops, IsSupersetOf({"Conv", "MaxPool", "AveragePool", "Gather",
                                 "LabelEncoder", "MatMul", "Pad", "Concat",
                                 "Erf", "Softplus", "Elu", "LeakyRelu"}));
  EXPECT_THAT(made, IsSupersetOf({"outputs", "probabilities"}));
  EXPECT_THAT(ReadAll(Path("all.onnx.job.textproto")),
              HasSubstr("name: \"all\""));
}

TEST_F(OnnxExportTest, OnnxruntimeGivesThePredictions) {
  WriteJobOfAllLayers();
  Train("ckpt", 5);
  const std::string lacks = PythonLacks(kLibraries);
  if (!lacks.empty()) GTEST_SKIP() << lacks;
  const CompletedProcess predicted =
      RunTool({"predict", Path("ckpt"), "--data_dir=" + Path(""),
               "--device=cpu", "--raw", "--output=" + Path("p.csv")});
  ASSERT_EQ(predicted.end.code(), 0) << predicted.standard_error;
  ASSERT_EQ(Export("all.onnx").end.code(), 0);
  // Exports that model again, with its tensors in a file of their own.
  ASSERT_OK(ExportOnnx(Path("ckpt"),
                       {.output = Path("outside.onnx"), .inline_bytes = 0}));
  for (const char* const model : {"all.onnx", "outside.onnx"}) {
    const CompletedProcess run =
        RunPython(kCompare, {Path(model), Path("data.csv"), Path("p.csv")});
    EXPECT_EQ(run.end.code(), 0) << model << ": " << run.standard_error;
  }
}

TEST_F(OnnxExportTest, NamedOutputsHaveTheirNames) {
  WriteJobOfNamedOutputs();
  Train("ckpt", 25);  // an epoch: each id has a row
  const CompletedProcess run = Export("named.onnx");
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  const onnx::ModelProto model = ModelAt(Path("named.onnx"));
  std::vector<std::string> outputs;
  for (const auto& output : model.graph().output()) {
    outputs.push_back(output.name());
  }
  EXPECT_THAT(outputs,
              ElementsAre("rating", "kind", "kind/probabilities", "likes_it"));
  const std::string lacks = PythonLacks(kLibraries);
  if (!lacks.empty()) GTEST_SKIP() << lacks;
  const CompletedProcess predicted =
      RunTool({"predict", Path("ckpt"), "--data_dir=" + Path(""),
               "--device=cpu", "--raw", "--output=" + Path("p.csv")});
  ASSERT_EQ(predicted.end.code(), 0) << predicted.standard_error;
  const CompletedProcess compared = RunPython(
      kCompareNamed, {Path("named.onnx"), Path("ratings.csv"), Path("p.csv")});
  EXPECT_EQ(compared.end.code(), 0) << compared.standard_error;
}

TEST_F(OnnxExportTest, SequencesHaveTheirMasksAsWeights) {
  std::ofstream(Path("job.textproto")) << R"(
    name: "sequences" seed: 5
    model {
      input { name: "seen" ids { column { name: "seen" identity {
        num_ids: 20 } } sequence { length: 4 } } }
      layer { name: "rows" input: "seen" embedding { table: "items" } }
      layer { name: "bag" input: "seen" embedding_bag { table: "items"
                                                       combiner: MEAN } }
      layer { name: "read" input: "rows" gru { units: 3 } }
      layer { name: "look" input: ["rows", "rows", "seen.mask"]
        multi_head_attention { num_heads: 1 key_dim: 2 masked: true } }
      layer { name: "mean" input: ["look", "seen.mask"]
        global_average_pool1d {} }
      layer { name: "flat" input: "rows" flatten {} }
      layer { input: ["bag", "read", "mean", "flat"] concatenate {} }
      layer { dense { units: 1 } }
      loss { binary_crossentropy {} }
      sparse_table { name: "items" width: 3 initializer { random_uniform {
        minval: -1 maxval: 1 } } }
    }
    train { csv { file: "lists.csv" label { column: "y" } } batch_size: 16 }
    eval { csv { file: "lists.csv" } batch_size: 16 }
    optimizer { adam { learning_rate: 0.01 } }
  )";
  std::ofstream lists(Path("lists.csv"));
  lists << "seen,y\n";
  for (int i = 0; i < kExamples; ++i) {
    for (int j = 0; j < i % 7; ++j)
      lists << (j == 0 ? "" : "|") << (i + j) % 20;
    lists << "," << i % 2 << "\n";
  }
  lists.close();
  Train("ckpt", 20);
  const CompletedProcess run = Export("m.onnx");
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  const std::string lacks = PythonLacks(kLibraries);
  if (!lacks.empty()) GTEST_SKIP() << lacks;
  const CompletedProcess predicted =
      RunTool({"predict", Path("ckpt"), "--data_dir=" + Path(""),
               "--device=cpu", "--raw", "--output=" + Path("p.csv")});
  ASSERT_EQ(predicted.end.code(), 0) << predicted.standard_error;
  const CompletedProcess compared = RunPython(
      kCompareSequences, {Path("m.onnx"), Path("lists.csv"), Path("p.csv")});
  EXPECT_EQ(compared.end.code(), 0) << compared.standard_error;
}

// As `parasol serve` calls it, whatever the job does.
TEST_F(OnnxExportTest, TheInputOfImagesIsCalledImage) {
  const IdxImages images = {
      .count = 2, .height = 2, .width = 2, .pixels = {1, 2, 3, 4, 5, 6, 7, 8}};
  std::ofstream(Path("images")) << IdxImagesFile(images);
  std::ofstream(Path("labels")) << IdxLabelsFile(std::vector<uint8_t>{0, 1});
  std::ofstream(Path("job.textproto"))
      << "model { input_shape: [2, 2] layer { flatten {} } "
         "layer { dense { units: 2 } } "
         "loss { sparse_categorical_crossentropy {} } } "
         "train { idx { images: 'images' labels: 'labels' } batch_size: 2 } "
         "optimizer { sgd {} }";
  Train("ckpt", 1);
  const CompletedProcess run = Export("new/folder/m.onnx");
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  const onnx::ModelProto model = ModelAt(Path("new/folder/m.onnx"));
  ASSERT_EQ(model.graph().input_size(), 1);
  EXPECT_EQ(model.graph().input(0).name(), "image");
}

TEST_F(OnnxExportTest, LargeTensorsAreInAFileBesideTheModel) {
  Train("ckpt", 3);
  ASSERT_OK(
      ExportOnnx(Path("ckpt"), {.output = Path("m.onnx"), .inline_bytes = 10}));
  const std::string data = ReadAll(Path("m.onnx.data"));
  const onnx::ModelProto model = ModelAt(Path("m.onnx"));
  int outside = 0;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) continue;
    ++outside;
    EXPECT_EQ(tensor.external_data(0).value(), "m.onnx.data");
    const size_t offset = std::stoull(tensor.external_data(1).value());
    const size_t length = std::stoull(tensor.external_data(2).value());
    EXPECT_EQ(offset % 4096, 0u);
    EXPECT_LE(offset + length, data.size());
  }
  EXPECT_EQ(outside, 6);  // two layers, a bag's bias, and rows
}

TEST_F(OnnxExportTest, AveragesAreExportedOnceThereAreSome) {
  std::string job = ReadAll(Path("job.textproto"));
  const std::string adam = "optimizer { adam { learning_rate: 0.01 }";
  job.replace(job.find(adam), adam.size(), adam + " ema { decay: 0.5 }");
  std::ofstream(Path("job.textproto")) << job;
  Train("ckpt", 3);
  const auto kernel_of = [this](const std::string& checkpoint, bool averages) {
    EXPECT_OK(ExportOnnx(Path(checkpoint),
                         {.output = Path("m.onnx"), .averages = averages}));
    const onnx::ModelProto model = ModelAt(Path("m.onnx"));
    for (const onnx::TensorProto& tensor : model.graph().initializer()) {
      if (tensor.name() == "hidden/kernel") return tensor.raw_data();
    }
    return std::string();
  };
  const std::string values = kernel_of("ckpt", false);
  EXPECT_EQ(values.size(), 3 * 5 * sizeof(float));
  EXPECT_NE(kernel_of("ckpt", true), values);
  // Before the first update the average is zeros.
  const std::string first = "ckpt/ckpt-000000000000";
  EXPECT_EQ(kernel_of(first, true), kernel_of(first, false));
}

TEST_F(OnnxExportTest, ATableWithoutRowsIsExported) {
  Train("ckpt", 1);
  const CompletedProcess run =
      RunTool({"export", Path("ckpt/ckpt-000000000000"), "--format=onnx",
               "--output=" + Path("m.onnx")});
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  const onnx::ModelProto model = ModelAt(Path("m.onnx"));
  const auto& tensors = model.graph().initializer();
  const auto rows = std::find_if(tensors.begin(), tensors.end(),
                                 [](const onnx::TensorProto& tensor) {
                                   return tensor.name() == "rows/rows";
                                 });
  ASSERT_NE(rows, tensors.end());
  EXPECT_THAT(rows->dims(), ElementsAre(1, 3));  // any other id's row
}

TEST_F(OnnxExportTest, FaultsAreNamedAndLeaveNoFile) {
  std::string job = ReadAll(Path("job.textproto"));
  job.replace(job.find("\"pair\""), 6, "\"outputs\"");
  std::ofstream(Path("job.textproto")) << job;
  Train("ckpt", 1);
  const CompletedProcess run = Export("m.onnx");
  EXPECT_EQ(run.end.code(), 2);
  EXPECT_THAT(run.standard_error, HasSubstr("input \"outputs\""));
  EXPECT_FALSE(std::ifstream(Path("m.onnx")).good());
}

}  // namespace
}  // namespace parasol
