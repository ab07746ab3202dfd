// `parasol serve` as users start it, with real requests.

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/tensorflow_serving.grpc.pb.h"
#include "serving/testing/http_client.h"
#include "tool/testing/run_tool.h"
#include "tool/testing/serve_fixture.h"

namespace parasol {
namespace {

using tensorflow::serving::PredictRequest;
using tensorflow::serving::PredictResponse;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ServeTest : public ServeFixture {
 protected:
  // What `parasol predict` says of the first examples.
  std::vector<float> Predicted() {
    const CompletedProcess run =
        RunTool({"predict", Path("ckpt"), "--data_dir=" + Path(""),
                 "--device=cpu", "--output=" + Path("p.csv")});
    EXPECT_EQ(run.end.code(), 0) << run.standard_error;
    std::ifstream csv(Path("p.csv"));
    std::string header;
    std::getline(csv, header);
    EXPECT_EQ(header, "prediction");
    std::vector<float> outputs;
    for (float output; csv >> output;) outputs.push_back(output);
    return outputs;
  }

  grpc::Status CallPredict(const PredictRequest& request,
                           PredictResponse& response) {
    const auto stub = tensorflow::serving::PredictionService::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", grpc_port_),
                            grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    return stub->Predict(&context, request, &response);
  }
};

PredictRequest TensorsOf(int count) {
  PredictRequest request;
  request.mutable_model_spec()->set_name("ratings");
  auto& users = (*request.mutable_inputs())["user"];
  auto& items = (*request.mutable_inputs())["item"];
  users.set_dtype(tensorflow::DT_INT64);
  items.set_dtype(tensorflow::DT_STRING);
  users.mutable_tensor_shape()->add_dim()->set_size(count);
  items.mutable_tensor_shape()->add_dim()->set_size(count);
  for (int i = 0; i < count; ++i) {
    users.add_int64_val(i % 17);
    items.add_string_val(absl::StrCat(i % 5));
  }
  return request;
}

TEST_F(ServeTest, AnswersAreThoseOfPredict) {
  Train("ckpt", 20);
  const std::vector<float> predicted = Predicted();
  ASSERT_THAT(predicted, SizeIs(kExamples));
  Start();
  AwaitLog("serving version 20");
  HttpClient client(port_);
  const HttpAnswer rows = client.Post(kPredict, RowsOf(50));
  ASSERT_EQ(rows.status, 200) << rows.body;
  EXPECT_EQ(VersionOf(rows), 20);
  const auto predictions = nlohmann::json::parse(rows.body)["predictions"];
  ASSERT_THAT(predictions, SizeIs(50));
  for (int i = 0; i < 50; ++i) {
    EXPECT_NEAR(predictions[i][0].get<float>(), predicted[i], 1e-5) << i;
  }
  const HttpAnswer columns =
      client.Post("/v1/models/ratings/versions/20:predict",
                  R"({"inputs": {"user": ["0", 1], "item": [0, "1"]}})");
  ASSERT_EQ(columns.status, 200) << columns.body;
  const auto outputs = nlohmann::json::parse(columns.body)["outputs"];
  EXPECT_NEAR(outputs[1][0].get<float>(), predicted[1], 1e-5);

  PredictResponse response;
  const grpc::Status called = CallPredict(TensorsOf(50), response);
  ASSERT_TRUE(called.ok()) << called.error_message();
  EXPECT_EQ(response.model_spec().version().value(), 20);
  const auto& tensor = response.outputs().at("outputs");
  ASSERT_EQ(tensor.float_val_size(), 50);
  for (int i = 0; i < 50; ++i) {
    EXPECT_NEAR(tensor.float_val(i), predicted[i], 1e-5) << i;
  }
  EXPECT_EQ(Terminate(), 0);
}

TEST_F(ServeTest, NamedOutputsAreAnsweredByName) {
  WriteJobOfNamedOutputs();
  Train("ckpt", 20);
  const CompletedProcess run =
      RunTool({"predict", Path("ckpt"), "--data_dir=" + Path(""),
               "--device=cpu", "--raw", "--output=" + Path("p.jsonl")});
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  std::ifstream file(Path("p.jsonl"));
  std::vector<nlohmann::json> predicted;
  for (std::string line; std::getline(file, line);) {
    predicted.push_back(nlohmann::json::parse(line));
  }
  Start();
  AwaitLog("serving version 20");
  HttpClient client(port_);
  const auto rows = nlohmann::json::parse(
      client.Post(kPredict, RowsOf(20)).body)["predictions"];
  ASSERT_THAT(rows, SizeIs(20));
  const auto columns = nlohmann::json::parse(
      client.Post(kPredict, R"({"inputs": {"user": [0, 1], "item": [0, 1]}})")
          .body)["outputs"];
  const auto probable = nlohmann::json::parse(
      client
          .Post(kPredict, R"({"signature_name": "probabilities",
                "inputs": {"user": [0, 1], "item": [0, 1]}})")
          .body)["outputs"];
  PredictResponse response;
  ASSERT_TRUE(CallPredict(TensorsOf(20), response).ok());
  EXPECT_EQ(response.outputs_size(), 3);
  for (int i = 0; i < 20; ++i) {
    for (const auto& [name, values] : predicted[i].items()) {
      for (size_t j = 0; j < values.size(); ++j) {
        const float want = values[j].get<float>();
        EXPECT_NEAR(rows[i][name][j].get<float>(), want, 1e-5) << name;
        EXPECT_NEAR(
            response.outputs().at(name).float_val(i * values.size() + j), want,
            1e-5)
            << name;
        if (i > 1) continue;
        EXPECT_NEAR(columns[name][i][j].get<float>(), want, 1e-5) << name;
        if (name != "kind") {
          // A number, and what is a probability already.
          EXPECT_EQ(probable[name][i][j], columns[name][i][j]) << name;
        }
      }
    }
  }
  double sum = 0;
  for (const auto& share : probable["kind"][0]) sum += share.get<double>();
  EXPECT_NEAR(sum, 1, 1e-6);

  PredictRequest one = TensorsOf(2);
  one.add_output_filter("kind");
  PredictResponse filtered;
  ASSERT_TRUE(CallPredict(one, filtered).ok());
  EXPECT_EQ(filtered.outputs_size(), 1);
  EXPECT_EQ(filtered.outputs().at("kind").float_val_size(), 6);
  one.add_output_filter("outputs");
  EXPECT_THAT(CallPredict(one, filtered).error_message(),
              HasSubstr("no output \"outputs\", but rating, kind, likes_it"));
  const auto metadata =
      nlohmann::json::parse(client.Get("/v1/models/ratings/metadata").body);
  EXPECT_EQ(
      metadata["metadata"]["signature_def"]["signature_def"]["serving_default"]
              ["outputs"]["kind"]["tensor_shape"]["dim"][1]["size"],
      "3");
  EXPECT_EQ(Terminate(), 0);
}

TEST_F(ServeTest, ColumnsOfPatternsAreInputsByTheirNames) {
  WriteJobOfPatterns();
  Train("ckpt", 20);
  const std::vector<float> predicted = Predicted();
  ASSERT_THAT(predicted, SizeIs(kExamples));
  Start();
  AwaitLog("serving version 20");
  HttpClient client(port_);
  const auto outputs =
      nlohmann::json::parse(client.Post(kPredict, RowsOfPatterns(50)).body);
  ASSERT_THAT(outputs["predictions"], SizeIs(50)) << outputs;
  for (int i = 0; i < 50; ++i) {
    EXPECT_NEAR(outputs["predictions"][i][0].get<float>(), predicted[i], 1e-5);
  }
  const std::string metadata = client.Get("/v1/models/ratings/metadata").body;
  for (const char* column : {"\"x1\"", "\"x2\"", "\"c1\"", "\"c2\""}) {
    EXPECT_THAT(metadata, HasSubstr(column));
  }
  // What the patterns would match, too, is no input of what was trained.
  const HttpAnswer unknown = client.Post(
      kPredict,
      R"({"instances": [{"x1": 1, "x2": 2, "x3": 3, "c1": "a", "c2": "b"}]})");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_THAT(unknown.body, HasSubstr("x3"));
  EXPECT_EQ(Terminate(), 0);
}

TEST_F(ServeTest, SaysWhatItServes) {
  Train("ckpt", 2);
  Start();
  AwaitLog("serving version 2");
  HttpClient client(port_);
  EXPECT_EQ(client.Get("/healthz").status, 200);
  const auto status =
      nlohmann::json::parse(client.Get("/v1/models/ratings").body);
  EXPECT_EQ(status["model_version_status"][0]["version"], "2");
  EXPECT_EQ(status["model_version_status"][0]["state"], "AVAILABLE");
  const auto metadata =
      nlohmann::json::parse(client.Get("/v1/models/ratings/metadata").body);
  EXPECT_EQ(metadata["metadata"]["signature_def"]["signature_def"]
                    ["serving_default"]["inputs"]["user"]["dtype"],
            "DT_STRING");
  EXPECT_THAT(client.Get("/metrics").body,
              HasSubstr("parasol_serve_model_version 2"));
}

TEST_F(ServeTest, SaysWhatItServesOverGrpc) {
  Train("ckpt", 2);
  Start();
  AwaitLog("serving version 2");
  namespace serving = tensorflow::serving;
  const auto channel =
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", grpc_port_),
                          grpc::InsecureChannelCredentials());
  const auto predictions = serving::PredictionService::NewStub(channel);
  const auto describe = [&](const serving::GetModelMetadataRequest& request,
                            serving::GetModelMetadataResponse& response) {
    grpc::ClientContext context;
    return predictions->GetModelMetadata(&context, request, &response);
  };
  serving::GetModelMetadataRequest request;
  request.mutable_model_spec()->set_name("ratings");
  serving::GetModelMetadataResponse response;
  EXPECT_THAT(describe(request, response).error_message(),
              HasSubstr("metadata_field is empty"));
  request.add_metadata_field("signature_def");
  ASSERT_TRUE(describe(request, response).ok());
  EXPECT_EQ(response.model_spec().version().value(), 2);
  serving::SignatureDefMap signatures;
  ASSERT_TRUE(response.metadata().at("signature_def").UnpackTo(&signatures));
  const tensorflow::SignatureDef& signature =
      signatures.signature_def().at("serving_default");
  EXPECT_EQ(signature.inputs().at("user").dtype(), tensorflow::DT_STRING);
  const tensorflow::TensorInfo& output = signature.outputs().at("outputs");
  EXPECT_EQ(output.dtype(), tensorflow::DT_FLOAT);
  ASSERT_EQ(output.tensor_shape().dim_size(), 2);
  EXPECT_EQ(output.tensor_shape().dim(0).size(), -1);
  EXPECT_EQ(output.tensor_shape().dim(1).size(), 1);
  request.add_metadata_field("weights");
  EXPECT_EQ(describe(request, response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);

  const auto models = serving::ModelService::NewStub(channel);
  const auto ask = [&](const serving::GetModelStatusRequest& of_model,
                       serving::GetModelStatusResponse& answer) {
    grpc::ClientContext context;
    return models->GetModelStatus(&context, of_model, &answer);
  };
  serving::GetModelStatusRequest of_model;
  of_model.mutable_model_spec()->set_name("ratings");
  serving::GetModelStatusResponse status;
  ASSERT_TRUE(ask(of_model, status).ok());
  ASSERT_EQ(status.model_version_status_size(), 1);
  EXPECT_EQ(status.model_version_status(0).version(), 2);
  EXPECT_EQ(status.model_version_status(0).state(),
            serving::ModelVersionStatus::AVAILABLE);
  of_model.mutable_model_spec()->mutable_version()->set_value(3);
  EXPECT_THAT(ask(of_model, status).error_message(),
              HasSubstr("version 3 is not served"));
  of_model.mutable_model_spec()->set_name("else");
  EXPECT_EQ(ask(of_model, status).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServeTest, ThePinnedVersionStays) {
  Train("ckpt", 20);
  Train("ckpt", 40);
  Start({"--version=20"});
  AwaitLog("serving version 20");
  HttpClient client(port_);
  EXPECT_EQ(VersionOf(client.Post(kPredict, RowsOf(1))), 20);
  const HttpAnswer other =
      client.Post("/v1/models/ratings/versions/40:predict", RowsOf(1));
  EXPECT_EQ(other.status, 404);
  EXPECT_THAT(other.body, HasSubstr("version 40 is not served"));
  EXPECT_EQ(Terminate(), 0);
  const CompletedProcess absent = RunTool(
      {"serve", Path("ckpt"), "--port=0", "--device=cpu", "--version=7"});
  EXPECT_EQ(absent.end.code(), 2);
  EXPECT_THAT(absent.standard_error,
              HasSubstr("--version=7; it has 0, 20, 40"));
}

TEST_F(ServeTest, HostileClientsAreAnsweredAndHarmNobody) {
  Train("ckpt", 2);
  Start({"--max_body_bytes=10000", "--client_timeout=1s", "--http_threads=4"});
  AwaitLog("serving version 2");
  // More slow clients than threads: a header and a body that do not end.
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (int i = 0; i < 8; ++i) {
    slow.push_back(std::make_unique<HttpClient>(port_));
    slow.back()->Send(i % 2 == 0
                          ? "POST /v1/models/ratings:predict HTTP/1.1\r\n"
                          : "POST /v1/models/ratings:predict HTTP/1.1"
                            "\r\nContent-Length: 5000\r\n\r\n{");
  }
  for (const auto& [path, body, status, words] :
       std::vector<std::tuple<std::string, std::string, int, std::string>>{
           {kPredict, "{", 400, "not JSON"},
           {kPredict, R"({"instances": [{"user": 1, "film": 2}]})", 400,
            "film"},
           {kPredict, R"({"instances": [{"user": [[1]], "item": 2}]})", 400,
            "input user of example 0"},
           {kPredict, std::string(10001, '['), 413, "--max_body_bytes"},
           {"/v1/models/other:predict", RowsOf(1), 404, "other"},
           {"/v1/models/ratings/versions/x:predict", RowsOf(1), 404, "path"},
           {"/v1/models/ratings", RowsOf(1), 405, "GET"},
           {kPredict, R"({"signature_name": "x", "instances": [{}]})", 400,
            "no signature"}}) {
    HttpClient client(port_);
    const HttpAnswer answer = client.Post(path, body);
    EXPECT_EQ(answer.status, status) << body.substr(0, 50) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(words));
    EXPECT_TRUE(nlohmann::json::parse(answer.body).contains("error"));
  }
  for (const auto& client : slow) {
    const int status = client->Receive().status;
    EXPECT_TRUE(status == 0 || status == 408 || status == 400) << status;
  }
  for (const std::string& bytes :
       {std::string("\0\1\2 nothing\r\n\r\n", 15),
        std::string("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"),
        std::string("GET http://elsewhere/x HTTP/1.1\r\nHost: x\r\n\r\n"),
        std::string("POST /v1/models/ratings:predict HTTP/1.1\r\n"
                    "Content-Length: 99999999999999999999\r\n\r\n{")}) {
    HttpClient garbage(port_);
    garbage.Send(bytes);
    EXPECT_NE(garbage.Receive().status, 200) << bytes;
  }
  PredictRequest request = TensorsOf(2);
  (*request.mutable_inputs())["user"].clear_int64_val();
  PredictResponse response;
  const grpc::Status called = CallPredict(request, response);
  EXPECT_EQ(called.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(called.error_message(), HasSubstr("input user"));
  EXPECT_EQ(HttpClient(port_).Post(kPredict, RowsOf(1)).status, 200);
  EXPECT_EQ(Terminate(), 0);
}

TEST_F(ServeTest, AnExampleThatIsNotOfTheModelReachesNoBatch) {
  // A layer that needs one id of each column.
  std::ifstream file(Path("job.textproto"));
  std::string job((std::istreambuf_iterator<char>(file)), {});
  const std::string bag = R"(embedding_bag { table: "rows" use_bias: true })";
  job.replace(job.find(bag), bag.size(),
              R"(embedding { table: "rows" } }
                 layer { name: "flat" flatten {})");
  std::ofstream(Path("job.textproto")) << job;
  Train("ckpt", 2);
  Start();
  AwaitLog("serving version 2");
  HttpClient client(port_);
  const HttpAnswer bad = client.Post(
      kPredict, R"({"instances": [{"user": [1, 2], "item": "3"}]})");
  EXPECT_EQ(bad.status, 400);
  EXPECT_THAT(bad.body, HasSubstr("example 0 has 3 ids"));
  EXPECT_THAT(client.Get("/metrics").body,
              HasSubstr("parasol_serve_batches_total 0"));
  EXPECT_EQ(client.Post(kPredict, RowsOf(1)).status, 200);
}

TEST_F(ServeTest, WaitsForTheFirstCheckpoint) {
  std::filesystem::create_directory(Path("ckpt"));
  Start();
  AwaitLog("waiting for the first checkpoint");
  HttpClient client(port_);
  EXPECT_EQ(client.Get("/healthz").status, 503);
  EXPECT_EQ(client.Post(kPredict, RowsOf(1)).status, 503);
  Train("ckpt", 2);
  AwaitLog("serving version 2");
  EXPECT_EQ(client.Get("/healthz").status, 200);
  // An open connection does not keep the server from leaving.
  EXPECT_EQ(Terminate(), 0);
}

}  // namespace
}  // namespace parasol
