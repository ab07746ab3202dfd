// Results of TensorFlow 2.10, one case a line: rebatch.jsonl of
// experimental_distribute_dataset, and reduce_and_variables.jsonl of
// Strategy.reduce and gather, ReplicaContext.all_reduce, and variables under
// MirroredStrategy.

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "loop/strategy.h"
#include "loop/variable.h"
#include "ml/tape/operations.h"

namespace parasol::loop {
namespace {

using ::google::protobuf::Struct;
using ::google::protobuf::Value;
using ::testing::ElementsAreArray;
using ::testing::FloatEq;
using ::testing::Not;
using ::testing::Pointwise;
using ::testing::SizeIs;

std::vector<Struct> CasesOf(const std::string& file) {
  std::ifstream in(absl::StrCat("loop/testdata/", file));
  std::vector<Struct> cases;
  for (std::string line; std::getline(in, line);) {
    EXPECT_TRUE(
        google::protobuf::util::JsonStringToMessage(line, &cases.emplace_back())
            .ok())
        << line;
  }
  return cases;
}

const Value& Field(const Struct& of, const std::string& name) {
  return of.fields().at(name);
}
std::string Text(const Struct& of, const std::string& name) {
  return Field(of, name).string_value();
}

void Flatten(const Value& value, int depth, TensorShape& shape,
             std::vector<float>& elements) {
  if (!value.has_list_value()) {
    elements.push_back(static_cast<float>(value.number_value()));
    return;
  }
  if (shape.rank() == depth) shape.Append(value.list_value().values_size());
  for (const Value& one : value.list_value().values()) {
    Flatten(one, depth + 1, shape, elements);
  }
}

Tensor TensorOf(const Value& value) {
  TensorShape shape;
  std::vector<float> elements;
  Flatten(value, 0, shape, elements);
  return Tensor::Of(elements, shape);
}

std::vector<Tensor> TensorsOf(const Value& values) {
  std::vector<Tensor> tensors;
  for (const Value& one : values.list_value().values()) {
    tensors.push_back(TensorOf(one));
  }
  return tensors;
}

bool IsError(const Value& wanted) {
  return wanted.has_struct_value() &&
         wanted.struct_value().fields().contains("error");
}

void ExpectResult(const Tensor& result, const Value& wanted) {
  if (IsError(wanted)) {
    EXPECT_THAT(result.status(), Not(IsOk()));
    return;
  }
  ASSERT_THAT(result.status(), IsOk());
  const Tensor want = TensorOf(wanted);
  EXPECT_EQ(result.shape(), want.shape());
  EXPECT_THAT(result.values(), Pointwise(FloatEq(), want.values()));
}

std::unique_ptr<Strategy> MirroredOf(int replicas) {
  std::vector<std::string> devices;
  for (int i = 0; i < replicas; ++i) {
    devices.push_back(absl::StrCat("cpu:", i));
  }
  auto strategy = Strategy::Mirrored(devices);
  EXPECT_THAT(strategy.status(), IsOk());
  return *std::move(strategy);
}

class GoldenReduceTest : public ::testing::Test {
 protected:
  void Check(const Struct& test) {
    SCOPED_TRACE(test.ShortDebugString());
    const std::unique_ptr<Strategy> strategy =
        MirroredOf(static_cast<int>(Field(test, "replicas").number_value()));
    const std::string kind = Text(test, "kind");
    if (kind == "variable") return CheckVariable(test, *strategy);
    const PerReplica<Tensor> values(TensorsOf(Field(test, "values")));
    if (kind == "gather") {
      const Tensor gathered = strategy->Gather(
          values, static_cast<int>(Field(test, "axis").number_value()));
      return ExpectResult(gathered, Field(test, "result"));
    }
    const ReduceOp op = Text(test, "op") == "SUM" ? kSum : kMean;
    if (kind == "reduce") {
      const Value& axis = Field(test, "axis");
      const Tensor reduced =
          axis.has_number_value()
              ? strategy->Reduce(op, values,
                                 static_cast<int>(axis.number_value()))
              : strategy->Reduce(op, values);
      return ExpectResult(reduced, Field(test, "result"));
    }
    ASSERT_EQ(kind, "replica_context.all_reduce");
    const auto reduced = strategy->Run(
        [&](ReplicaContext& replica, const Tensor& value) {
          return replica.AllReduce(op, value);
        },
        values);
    ASSERT_THAT(reduced.status(), IsOk());
    const auto& wanted = Field(test, "result").list_value().values();
    for (int i = 0; i < wanted.size(); ++i) {
      ExpectResult(reduced.values()[i], wanted[i]);
    }
  }

  static void CheckVariable(const Struct& test, Strategy& strategy) {
    const Strategy::Scope scope(strategy);
    const Variable::Options options = OptionsOf(test);
    const auto variable = Variable::Create("v", 10.f, options);
    ASSERT_THAT(variable.status(), IsOk());
    const auto other = Variable::Create("other", 10.f, options);
    ASSERT_THAT(other.status(), IsOk());
    const std::string method = Text(test, "method");
    for (const Value& step : Field(test, "steps").list_value().values()) {
      const Struct& fields = step.struct_value();
      const PerReplica<Tensor> pushed(TensorsOf(Field(fields, "pushed")));
      ASSERT_THAT(strategy.Run(
                      [&](ReplicaContext&, const Tensor& by) {
                        return Change(method, *variable, by);
                      },
                      pushed),
                  IsOk());
      ExpectLocals(strategy, *variable, Field(fields, "local"));
      ExpectResult(variable->Read(), Field(fields, "read_cross_replica"));
    }
    const Struct& outside = Field(test, "cross_replica_context").struct_value();
    if (outside.fields().contains("error")) {
      // TensorFlow can't assign what has no aggregation; here all get it.
      if (Text(test, "aggregation") == "NONE") return;
      EXPECT_THAT(Change(method, *other, 6.f), Not(IsOk()));
      return;
    }
    ASSERT_THAT(Change(method, *other, 6.f), IsOk());
    ExpectLocals(strategy, *other, Field(outside, "local"));
    ExpectResult(other->Read(), Field(outside, "read_cross_replica"));
  }

  static Variable::Options OptionsOf(const Struct& test) {
    Variable::Options options;
    const std::string aggregation = Text(test, "aggregation");
    options.aggregation = aggregation == "SUM"    ? Aggregation::kSum
                          : aggregation == "MEAN" ? Aggregation::kMean
                          : aggregation == "NONE"
                              ? Aggregation::kNone
                              : Aggregation::kOnlyFirstReplica;
    options.synchronization = Text(test, "synchronization") == "ON_READ"
                                  ? Synchronization::kOnRead
                                  : Synchronization::kOnWrite;
    return options;
  }

  static absl::Status Change(const std::string& method,
                             const Variable& variable, const Tensor& by) {
    return method == "assign"       ? variable.Assign(by)
           : method == "assign_add" ? variable.AssignAdd(by)
                                    : variable.AssignSub(by);
  }

  static void ExpectLocals(Strategy& strategy, const Variable& variable,
                           const Value& wanted) {
    const auto locals =
        strategy.Run([&](ReplicaContext&) { return variable.Read(); });
    ASSERT_THAT(locals.status(), IsOk());
    std::vector<float> values;
    for (const Tensor& one : locals.values()) values.push_back(one.scalar());
    EXPECT_THAT(values, ElementsAreArray(TensorOf(wanted).values()));
  }
};

TEST_F(GoldenReduceTest, ReducesGathersAndAggregatesAsTensorFlow) {
  const std::vector<Struct> cases = CasesOf("reduce_and_variables.jsonl");
  EXPECT_THAT(cases, SizeIs(116));
  for (const Struct& test : cases) Check(test);
}

// The examples of each piece.
std::vector<std::vector<float>> PiecesOf(const PerReplica<Batch>& batch) {
  std::vector<std::vector<float>> pieces;
  for (const Batch& piece : batch.values()) {
    const absl::Span<const float> values = piece[0].values();
    pieces.emplace_back(values.begin(), values.end());
  }
  return pieces;
}

void ExpectSteps(const DistributedDataset& data, const Value& steps) {
  auto batch = data.begin();
  for (const Value& step : steps.list_value().values()) {
    ASSERT_FALSE(batch.is_at_end());
    std::vector<std::vector<float>> wanted;
    for (const Value& piece : step.list_value().values()) {
      std::vector<float>& examples = wanted.emplace_back();
      for (const Value& one : piece.list_value().values()) {
        examples.push_back(static_cast<float>(one.number_value()));
      }
    }
    EXPECT_EQ(PiecesOf(*batch), wanted);
    ++batch;
  }
  EXPECT_TRUE(batch.is_at_end());
}

TEST(GoldenRebatchTest, CutsBatchesAsTensorFlow) {
  int checked = 0;
  for (const Struct& test : CasesOf("rebatch.jsonl")) {
    // OFF and FILE are choices of a job's data set; a program makes a data set
    // for each process instead.
    const std::string policy = Text(test, "policy");
    if (policy == "OFF" || policy == "FILE") continue;
    SCOPED_TRACE(test.ShortDebugString());
    std::vector<float> numbers;
    for (int i = 0; i < Field(test, "n").number_value(); ++i) {
      numbers.push_back(static_cast<float>(i));
    }
    const auto range = Dataset::FromTensors(
        {Tensor::Of(numbers, {static_cast<int64_t>(numbers.size())})});
    ASSERT_THAT(range.status(), IsOk());
    const Dataset batched = range->Batched(
        static_cast<int64_t>(Field(test, "batch").number_value()),
        Field(test, "drop_remainder").bool_value());
    ++checked;
    if (test.fields().contains("steps")) {
      const int replicas =
          static_cast<int>(Field(test, "replicas").number_value());
      ExpectSteps(DistributedDataset(batched, replicas, 0, replicas),
                  Field(test, "steps"));
      continue;
    }
    const auto& workers = Field(test, "worker_steps").list_value().values();
    for (int worker = 0; worker < workers.size(); ++worker) {
      ExpectSteps(DistributedDataset(batched, workers.size(), worker, 1),
                  workers[worker]);
    }
  }
  EXPECT_EQ(checked, 120);
}

}  // namespace
}  // namespace parasol::loop
