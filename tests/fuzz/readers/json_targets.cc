#include "tests/fuzz/readers/json_targets.h"

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/strict_json.h"
#include "cluster/cluster_spec/tf_config.h"
#include "google/protobuf/text_format.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/format/given_examples.h"
#include "proto/job.pb.h"
#include "serving/json_request.h"
#include "tool/publish/published_version.h"

namespace parasol {
namespace {

constexpr char kModel[] = R"(
  input { name: "pair" ids { column { name: "user" identity { num_ids: 100 } }
                             column { name: "item" vocabulary { value: "a" } } } }
  input { name: "age" dense { column { name: "age" default_value: 7 } } }
  input { name: "x" dense { shape: [2, 2] } })";
constexpr char kDataset[] = R"(csv { label { column: "y" } missing: "NA" })";

GivenExamples MakeForm() {
  job::Model model;
  job::Dataset dataset;
  CHECK(google::protobuf::TextFormat::ParseFromString(kModel, &model));
  CHECK(google::protobuf::TextFormat::ParseFromString(kDataset, &dataset));
  const auto inputs = ModelInputsOf(model, {});
  CHECK(inputs.ok()) << inputs.status();
  auto form = GivenExamples::Create(dataset, *inputs);
  CHECK(form.ok()) << form.status();
  return *std::move(form);
}

void FeedRequest(absl::string_view input) {
  static const GivenExamples form = MakeForm();
  RequestColumns columns(
      form,
      {.max_examples = 100, .max_values = 10'000, .max_text_bytes = 10'000});
  if (!ParseJsonRequest(input, columns).ok()) return;
  Batch batch;
  if (!columns.ToBatch(batch).ok()) return;
  CHECK_EQ(batch.size, columns.examples());
}

std::vector<std::string> RequestSeeds() {
  return {
      R"({"signature_name": "s", "instances": [{"user": 3, "item": "b",
          "age": 2.5, "x": [[1, 2], [3, 4]], "y": 1}, {"user": "4",
          "item": {"b64": "YQ=="}, "age": null, "x": [1, 2, 3, 4e-2]}]})",
      R"({"inputs": {"user": [3, 4], "item": ["b", "a"], "age": [[2.5], "NA"],
          "x": [[[1, 2], [3, 4]], [1, 2, 3, 4]]}})"};
}

void FeedTfConfig(absl::string_view input) {
  for (const Role role : {Role::kChief, Role::kPs, Role::kWorker}) {
    const auto config = ParseTfConfig(input, role, std::nullopt);
    if (!config.ok()) continue;
    const auto line = ParseStrictJson(CheckConfigLine(*config));
    CHECK(line.ok()) << line.status();
  }
  ParseClusterSpec(input, "worker/1", Role::kWorker, std::nullopt)
      .IgnoreError();
}

std::vector<std::string> TfConfigSeeds() {
  const std::string cluster =
      R"("cluster": {"chief": ["h0:2222"], "ps": ["h1:2222"],
         "worker": {"0": "h2:2222", "1": "[::1]:2223"}})";
  return {absl::StrCat("{", cluster,
                       R"(, "task": {"type": "worker", "index": 1},
                           "rpc_layer": "grpc"})"),
          absl::StrCat("{", cluster, "}"),
          R"({"worker": ["h2:2222", "h3:2222"]})"};
}

// What is read is written as what is read again.
void FeedPublishedManifest(absl::string_view input) {
  const auto version = ParseManifest(input, "manifest");
  if (!version.ok()) return;
  const std::string text = ManifestText(*version);
  const auto again = ParseManifest(text, "manifest");
  CHECK(again.ok()) << again.status();
  CHECK_EQ(ManifestText(*again), text);
}

std::vector<std::string> PublishedManifestSeeds() {
  PublishedVersion version = {
      .version = 1,
      .step = 300,
      .run_id = "0123",
      .job = "ratings",
      .type = ElementType::kFloat32,
      .files = {{std::string(kVersionTensors), 140}},
      .tensors = {{.info = {.name = "b",
                            .type = ElementType::kFloat32,
                            .shape = {2, 3}},
                   .sha256 = std::string(64, 'b')},
                  {.info = {.name = "a", .type = ElementType::kUint64},
                   .sha256 = std::string(64, 'a')}}};
  const std::string whole = ManifestText(version);
  version.version = 7;
  version.base = 6;
  version.format = VersionFormat::kXor;
  version.base_state = StateDigest(version.tensors);
  version.pytorch_layout = true;
  return {whole, ManifestText(version)};
}

// A member at a time gives what the whole has.
void FeedJson(absl::string_view input) {
  const auto whole = ParseStrictJson(input);
  nlohmann::json members = nlohmann::json::object();
  const absl::Status visited = VisitJsonMembers(
      input, [&](const std::string& name, const nlohmann::json& value) {
        members[name] = value;
        return absl::OkStatus();
      });
  ParseOrderedJson(input).IgnoreError();
  if (!whole.ok() || !whole->is_object()) return;
  CHECK(visited.ok()) << visited;
  CHECK(members == *whole);
}

std::vector<std::string> JsonSeeds() {
  return {R"( {"a": [1, -2, 0.5, true, null, {"b": [[]]}], "c": "\u00e9"} )",
          "[[[[]]]]"};
}

}  // namespace

std::vector<FuzzTarget> JsonTargets() {
  return {{"serve_json", FeedRequest, RequestSeeds},
          {"tf_config", FeedTfConfig, TfConfigSeeds},
          {"published_manifest", FeedPublishedManifest, PublishedManifestSeeds},
          {"json", FeedJson, JsonSeeds}};
}

}  // namespace parasol
