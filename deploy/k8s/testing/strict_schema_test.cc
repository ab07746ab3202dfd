#include "deploy/k8s/testing/strict_schema.h"

#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "deploy/k8s/testing/yaml_documents.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> FaultsOfYaml(const std::string& text) {
  const auto documents = YamlDocuments(text);
  EXPECT_OK(documents);
  return StrictSchemas("deploy/k8s/schemas").FaultsOf(documents->at(0));
}

TEST(StrictSchemaTest, AGoodObjectHasNoFaults) {
  EXPECT_THAT(FaultsOfYaml("{apiVersion: policy/v1, kind: PodDisruptionBudget, "
                           "metadata: {name: a}, spec: {maxUnavailable: 1, "
                           "selector: {matchLabels: {a: b}}}}"),
              IsEmpty());
}

TEST(StrictSchemaTest, EachFaultIsNamedWithItsPath) {
  EXPECT_THAT(
      FaultsOfYaml("{apiVersion: v1, kind: Service, metadata: {name: A_}, "
                   "spec: {clusterIp: None, selector: {a: 1}, "
                   "ports: [{name: grpc, port: 70000}, {port: '9'}]}}"),
      ElementsAre("Service.metadata.name: A_ does not match the pattern",
                  "Service.spec.clusterIp: unknown field",
                  "Service.spec.ports[0].port: above maximum",
                  "Service.spec.ports[1]: without name",
                  "Service.spec.ports[1].port: not of type integer",
                  "Service.spec.selector.a: not of type string"));
}

TEST(StrictSchemaTest, PodsAreCheckedToTheirLastField) {
  EXPECT_THAT(
      FaultsOfYaml(
          "{apiVersion: apps/v1, kind: StatefulSet, spec: "
          "{serviceName: a, selector: {}, template: {spec: "
          "{containers: [{name: a, readynessProbe: {}, env: [{name: a, "
          "value: 1}]}]}}}}"),
      ElementsAre(
          "StatefulSet.spec.template.spec.containers[0].env[0].value: not of "
          "type string",
          "StatefulSet.spec.template.spec.containers[0].readynessProbe: "
          "unknown field"));
}

TEST(StrictSchemaTest, FieldsOfCustomKindsAreKnown) {
  EXPECT_THAT(FaultsOfYaml("{apiVersion: trainer.kubeflow.org/v1alpha1, kind: "
                           "TrainJob, spec: {runtimeRef: {name: a}, trainer: "
                           "{numNode: 1, numNodes: -1}}}"),
              ElementsAre("TrainJob.spec.trainer.numNode: unknown field",
                          "TrainJob.spec.trainer.numNodes: below minimum"));
  EXPECT_THAT(FaultsOfYaml("{apiVersion: v1, kind: Pot}"),
              ElementsAre("v1/Pot: unknown kind"));
}

TEST(YamlDocumentsTest, QuotesMakeStringsAndAnchorsAreResolved) {
  const auto documents =
      YamlDocuments("# none\n---\na: &x {b: 2, c: \"2\", d: on}\ne: *x\n");
  ASSERT_OK(documents);
  ASSERT_EQ(documents->size(), 1u);
  EXPECT_EQ(documents->at(0).dump(),
            R"({"a":{"b":2,"c":"2","d":"on"},"e":{"b":2,"c":"2","d":"on"}})");
}

TEST(YamlDocumentsTest, AKeyThatIsTwiceInAMapIsAFault) {
  EXPECT_THAT(YamlDocuments("a: 1\nb: 2\na: 3\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("line 3: a is there twice")));
  EXPECT_THAT(YamlDocuments("a: [1\n"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace parasol
