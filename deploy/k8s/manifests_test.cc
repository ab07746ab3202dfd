#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_matchers.h"
#include "deploy/k8s/testing/rendered_manifests.h"
#include "deploy/k8s/testing/strict_schema.h"
#include "deploy/k8s/testing/yaml_documents.h"
#include "deploy/testing/program_flags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "re2/re2.h"

// All manifests against the schemas of their kinds, and against the programs
// that they start.
namespace parasol {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kFolder[] = "deploy/k8s";
// A job in Volcano's queue, of another name.
constexpr char kVolcanoOverlay[] = R"(
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namePrefix: ads-
resources: [../base]
components: [../components/volcano]
)";

// A job with certificates, of another name.
constexpr char kTlsOverlay[] = R"(
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namePrefix: ads-
resources: [../base]
components: [../components/tls]
)";

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Json> DocumentsOf(const std::string& name,
                              const std::string& text) {
  absl::StatusOr<std::vector<Json>> documents = YamlDocuments(text);
  EXPECT_OK(documents) << name;
  return documents.ok() ? *std::move(documents) : std::vector<Json>();
}

// Returns the objects that kustomize renders of an overlay of the tree or of
// one of the above.
std::vector<Json> Rendered(const std::string& overlay) {
  const absl::StatusOr<std::string> text = RenderedManifests(
      overlay, {{"volcano_job/kustomization.yaml", kVolcanoOverlay},
                {"tls_job/kustomization.yaml", kTlsOverlay},
                {"named_job/token", "0123456789abcdef"}});
  EXPECT_OK(text) << overlay;
  return text.ok() ? DocumentsOf(overlay, *text) : std::vector<Json>();
}

// Returns the objects that files define as they stand: without kustomizations
// and what these refer to.
std::map<std::string, std::vector<Json>> ObjectsOfFiles() {
  std::map<std::string, std::vector<Json>> objects;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(kFolder)) {
    const std::string path = entry.path();
    if (!absl::EndsWith(path, ".yaml") ||
        absl::EndsWith(path, "/kustomization.yaml") ||
        absl::EndsWith(path, "/references.yaml")) {
      continue;
    }
    objects[path] = DocumentsOf(path, TextOf(path));
  }
  return objects;
}

// Calls `visit` with each container in an object of any kind.
template <typename Visit>
void ForEachContainer(const Json& value, const Visit& visit) {
  if (value.is_object() && value.contains("containers")) {
    for (const Json& container : value["containers"]) visit(container);
  }
  if (!value.is_structured()) return;
  for (const Json& item : value) ForEachContainer(item, visit);
}

Json Runtime() {
  return DocumentsOf("runtime",
                     TextOf(absl::StrCat(kFolder, "/trainer/runtime.yaml")))
      .at(0);
}

TEST(ManifestsTest, FilesHaveTheSchemasOfTheirKinds) {
  const StrictSchemas schemas(absl::StrCat(kFolder, "/schemas"));
  const auto files = ObjectsOfFiles();
  EXPECT_GT(files.size(), 10u);
  for (const auto& [path, objects] : files) {
    for (const Json& object : objects) {
      EXPECT_THAT(schemas.FaultsOf(object), IsEmpty()) << path;
    }
  }
}

TEST(ManifestsTest, WhatIsRenderedHasTheSchemasOfItsKinds) {
  if (!HasKubectl()) GTEST_SKIP() << "kubectl is not here";
  const StrictSchemas schemas(absl::StrCat(kFolder, "/schemas"));
  for (const char* overlay : {"base", "hybrid", "multi_worker_mirrored",
                              "named_job", "trainer", "volcano_job"}) {
    const std::vector<Json> objects = Rendered(overlay);
    EXPECT_FALSE(objects.empty()) << overlay;
    for (const Json& object : objects) {
      EXPECT_THAT(schemas.FaultsOf(object), IsEmpty()) << overlay;
    }
  }
}

// Returns the words of a container's command line.
std::vector<std::string> CommandLineOf(const Json& container) {
  std::vector<std::string> words =
      container.value("command", std::vector<std::string>());
  for (const Json& word : container.value("args", Json::array())) {
    words.push_back(word);
  }
  return words;
}

TEST(ManifestsTest, EachFlagIsOneOfTheProgramThatGetsIt) {
  std::map<std::string, std::set<std::string>> flags;
  for (const char* role : {"chief", "ps", "worker", "evaluator"}) {
    flags[role] = FlagsOfProgram(role);
  }
  int checked = 0;
  const auto check = [&](const Json& container) {
    std::string role;
    std::string flag;
    for (const std::string& word : CommandLineOf(container)) {
      RE2::FullMatch(word, "/opt/parasol/bin/(.*)", &role);
      if (!RE2::PartialMatch(word, "^--([a-z_]+)", &flag)) continue;
      ++checked;
      EXPECT_TRUE(flags[role].contains(flag)) << role << ": --" << flag;
    }
  };
  for (const auto& [path, objects] : ObjectsOfFiles()) {
    SCOPED_TRACE(path);
    for (const Json& object : objects) ForEachContainer(object, check);
  }
  EXPECT_GT(checked, 40);
}

TEST(ManifestsTest, TheImageHasEachProgramThatIsStarted) {
  const std::string image = TextOf("deploy/Dockerfile");
  const std::string roles = "for role in chief ps worker evaluator; do";
  EXPECT_THAT(image, HasSubstr(roles));
  std::set<std::string> programs;
  const auto add = [&](const Json& container) {
    std::string program;
    for (const std::string& word : CommandLineOf(container)) {
      if (RE2::FullMatch(word, "/opt/parasol/bin/(.*)", &program)) {
        programs.insert(program);
      }
    }
  };
  for (const auto& [path, objects] : ObjectsOfFiles()) {
    for (const Json& object : objects) ForEachContainer(object, add);
  }
  for (const std::string& program : programs) {
    EXPECT_TRUE(absl::StrContains(roles, absl::StrCat(" ", program)) ||
                absl::StrContains(
                    image, absl::StrCat(" /opt/parasol/bin/", program, "\n")))
        << program;
  }
  EXPECT_EQ(programs.size(), 5u);
}

// Every object of a job that has a name of its own has it, and what refers to
// others refers to those.
TEST(ManifestsTest, APrefixReachesEveryNameAndReference) {
  if (!HasKubectl()) GTEST_SKIP() << "kubectl is not here";
  std::set<std::string> names;
  const std::vector<Json> objects = Rendered("named_job");
  for (const Json& object : objects) {
    names.insert(object["metadata"]["name"]);
  }
  EXPECT_THAT(names, Each(StartsWith("ads-")));
  for (const Json& object : objects) {
    const Json spec = object.value("spec", Json::object());
    if (spec.contains("serviceName")) {
      EXPECT_TRUE(names.contains(spec["serviceName"]));
    }
    if (!spec.contains("template")) continue;
    for (const Json& volume : spec["template"]["spec"]["volumes"]) {
      if (volume.contains("configMap")) {
        EXPECT_TRUE(names.contains(volume["configMap"]["name"])) << volume;
      }
      if (volume.contains("secret")) {
        EXPECT_TRUE(names.contains(volume["secret"]["secretName"])) << volume;
      }
      if (volume.contains("persistentVolumeClaim")) {
        EXPECT_TRUE(
            names.contains(volume["persistentVolumeClaim"]["claimName"]))
            << volume;
      }
    }
  }
}

// Two jobs of a namespace: nothing that chooses pods chooses the other's.
TEST(ManifestsTest, WhatChoosesPodsChoosesThoseOfItsJob) {
  if (!HasKubectl()) GTEST_SKIP() << "kubectl is not here";
  for (const auto& [overlay, instance] : std::map<std::string, std::string>{
           {"base", "parasol"}, {"named_job", "ads"}}) {
    int selectors = 0;
    const auto expect = [&](const Json& labels) {
      ++selectors;
      EXPECT_EQ(labels.value("app.kubernetes.io/instance", ""), instance)
          << labels;
    };
    for (const Json& object : Rendered(overlay)) {
      const std::string kind = object["kind"];
      const Json spec = object.value("spec", Json::object());
      if (kind == "Service") expect(spec["selector"]);
      if (kind == "StatefulSet" || kind == "PodDisruptionBudget") {
        expect(spec["selector"]["matchLabels"]);
      }
      if (kind == "StatefulSet" || kind == "Job") {
        expect(spec["template"]["metadata"]["labels"]);
      }
      if (kind == "NetworkPolicy") {
        expect(spec["podSelector"]["matchLabels"]);
        expect(spec["ingress"][0]["from"][0]["podSelector"]["matchLabels"]);
      }
    }
    EXPECT_EQ(selectors, 14) << overlay;
  }
}

TEST(ManifestsTest, OnlyTheJobAndPrometheusAreLetIn) {
  for (const char* file : {"base", "trainer"}) {
    const Json policy =
        DocumentsOf(file, TextOf(absl::StrCat(kFolder, "/", file,
                                              "/network_policy.yaml")))
            .at(0);
    const Json& ingress = policy["spec"]["ingress"];
    ASSERT_EQ(ingress.size(), 2u);
    EXPECT_EQ(ingress[0]["from"].size(), 1u);
    EXPECT_EQ(ingress[0]["from"][0]["podSelector"]["matchLabels"],
              policy["spec"]["podSelector"]["matchLabels"]);
    // A selector in two list items would let in the whole namespace.
    ASSERT_EQ(ingress[1]["from"].size(), 1u);
    EXPECT_EQ(ingress[1]["from"][0].size(), 2u);
    EXPECT_EQ(ingress[1]["ports"], Json::parse(R"([{"port": 9090}])"));
  }
}

// Returns how the flags that begin so are set in a container's command line.
std::vector<std::string> FlagsThatBegin(const std::string& prefix,
                                        const Json& container) {
  std::vector<std::string> flags;
  for (const std::string& word : CommandLineOf(container)) {
    if (absl::StartsWith(word, prefix)) flags.push_back(word);
  }
  return flags;
}

TEST(ManifestsTest, EveryTaskHasTheTokenOfItsJob) {
  int tasks = 0;
  const auto check = [&](const Json& container) {
    ++tasks;
    EXPECT_EQ(FlagsThatBegin("--token_file", container),
              std::vector<std::string>{"--token_file=/etc/parasol/keys/token"});
    EXPECT_THAT(container["volumeMounts"],
                Contains(Json({{"name", "keys"},
                               {"mountPath", "/etc/parasol/keys"},
                               {"readOnly", true}})));
  };
  for (const auto& [path, objects] : ObjectsOfFiles()) {
    SCOPED_TRACE(path);
    for (const Json& object : objects) ForEachContainer(object, check);
  }
  EXPECT_EQ(tasks, 4 + 4 + 4 + 2);
}

TEST(ManifestsTest, WithTlsEveryTaskHasACertificateOfItsNameAndNoToken) {
  if (!HasKubectl()) GTEST_SKIP() << "kubectl is not here";
  for (const Json& object : Rendered("tls_job")) {
    if (object["kind"] != "StatefulSet" && object["kind"] != "Job") continue;
    const Json& pod = object["spec"]["template"]["spec"];
    const Json& container = pod["containers"][0];
    EXPECT_THAT(FlagsThatBegin("--token_file", container), IsEmpty());
    EXPECT_EQ(
        FlagsThatBegin("--tls_", container),
        (std::vector<std::string>{"--tls_certificate=/etc/parasol/keys/tls.crt",
                                  "--tls_key=/etc/parasol/keys/tls.key",
                                  "--tls_ca=/etc/parasol/keys/ca.crt"}));
    EXPECT_EQ(pod["volumes"][0]["name"], "keys");
    EXPECT_FALSE(pod["volumes"][0].contains("secret"));
    const Json& attributes = pod["volumes"][0]["csi"]["volumeAttributes"];
    const bool is_evaluator = object["kind"] == "Job";
    EXPECT_EQ(attributes["csi.cert-manager.io/dns-names"],
              is_evaluator ? "${SERVICE_ACCOUNT_NAME}" : "${POD_NAME}");
    EXPECT_EQ(pod.value("serviceAccountName", ""),
              is_evaluator ? "ads-parasol-evaluator-0" : "");
  }
}

TEST(ManifestsTest, TheGroupOfVolcanoIsFoundUnderAnotherName) {
  if (!HasKubectl()) GTEST_SKIP() << "kubectl is not here";
  const std::vector<Json> objects = Rendered("volcano_job");
  int replicas = 0;
  int64_t members = 0;
  for (const Json& object : objects) {
    if (object["kind"] == "PodGroup") {
      EXPECT_EQ(object["metadata"]["name"], "ads-parasol");
      members = object["spec"]["minMember"];
    }
    if (object["kind"] != "StatefulSet") continue;
    const Json& pod = object["spec"]["template"];
    EXPECT_EQ(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"],
              "ads-parasol");
    EXPECT_EQ(pod["spec"]["schedulerName"], "volcano");
    replicas += object["spec"]["replicas"].get<int>();
  }
  EXPECT_EQ(members, replicas);
}

TEST(ManifestsTest, ChiefAndPsHaveThePriorityAndAllObjectsTheQueue) {
  if (!HasKubectl()) GTEST_SKIP() << "kubectl is not here";
  std::set<std::string> first;
  for (const Json& object : Rendered("named_job")) {
    if (object["kind"] != "StatefulSet" && object["kind"] != "Job") continue;
    EXPECT_EQ(object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"],
              "parasol");
    if (object["spec"]["template"]["spec"].value("priorityClassName", "") ==
        "parasol-state") {
      first.insert(object["metadata"]["name"]);
    }
  }
  EXPECT_EQ(first,
            (std::set<std::string>{"ads-parasol-chief", "ads-parasol-ps"}));
}

TEST(RuntimeTest, ItsJobSetHasTheSchemaOfJobSet) {
  const StrictSchemas schemas(absl::StrCat(kFolder, "/schemas"));
  EXPECT_THAT(schemas.FaultsOfPart(Runtime()["spec"]["template"]["spec"],
                                   "jobset.x-k8s.io/v1alpha2/JobSet",
                                   "/properties/spec"),
              IsEmpty());
}

TEST(RuntimeTest, TheChiefIsTheTrainerStepAndItsSuccessTheJobs) {
  const Json spec = Runtime()["spec"]["template"]["spec"];
  EXPECT_EQ(
      spec["successPolicy"],
      Json::parse(R"({"operator": "All", "targetReplicatedJobs": ["chief"]})"));
  std::vector<std::string> names;
  for (const Json& job : spec["replicatedJobs"]) {
    names.push_back(job["name"]);
    EXPECT_EQ(job["replicas"], 1);
    const Json labels = job["template"]
                            .value("metadata", Json::object())
                            .value("labels", Json::object());
    const bool is_step =
        labels.contains("trainer.kubeflow.org/trainjob-ancestor-step");
    EXPECT_EQ(is_step, job["name"] == "chief");
    const Json& container =
        job["template"]["spec"]["template"]["spec"]["containers"][0];
    EXPECT_EQ(container["name"] == "node", is_step);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"chief", "ps", "worker", "evaluator"}));
}

TEST(RuntimeTest, EachTaskIsStartedAgainAloneUnlessTheJobIsAtFault) {
  const Json spec = Runtime()["spec"]["template"]["spec"];
  const Json& rules = spec["failurePolicy"]["rules"];
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0]["action"], "FailJobSet");
  EXPECT_EQ(rules[0]["onJobFailureReasons"], Json::array({"PodFailurePolicy"}));
  // All that is left: not RestartJobSet.
  EXPECT_EQ(rules[1]["action"], "RestartJob");
  EXPECT_EQ(rules[1].size(), 2u);
  for (const Json& job : spec["replicatedJobs"]) {
    const Json& task = job["template"]["spec"];
    const Json& pod = task["template"]["spec"];
    const Json& container = pod["containers"][0];
    EXPECT_EQ(container["restartPolicyRules"],
              Json::parse(R"([{"action": "Restart", "exitCodes":
                               {"operator": "NotIn", "values": [0, 1, 2]}}])"));
    EXPECT_EQ(pod["restartPolicy"], "Never");
    const Json& policy = task["podFailurePolicy"]["rules"][0];
    EXPECT_EQ(policy["action"], "FailJob");
    EXPECT_EQ(policy["onExitCodes"]["containerName"], container["name"]);
    EXPECT_EQ(policy["onExitCodes"]["values"], Json::parse("[1, 2]"));
    EXPECT_GT(pod["terminationGracePeriodSeconds"], 50);
  }
}

TEST(RuntimeTest, ThereAreAsManyPodsAsTasksAreTold) {
  for (const Json& job :
       Runtime()["spec"]["template"]["spec"]["replicatedJobs"]) {
    const Json& task = job["template"]["spec"];
    EXPECT_EQ(task["completionMode"], "Indexed");
    EXPECT_EQ(task["completions"], task["parallelism"]);
    std::map<std::string, std::string> environment;
    for (const Json& variable :
         task["template"]["spec"]["containers"][0]["env"]) {
      environment[variable["name"]] = variable.value("value", "");
    }
    EXPECT_TRUE(environment.contains("JOBSET_NAME"));
    for (const Json& other :
         Runtime()["spec"]["template"]["spec"]["replicatedJobs"]) {
      const int count = other["template"]["spec"]["completions"];
      if (other["name"] == "ps") {
        EXPECT_EQ(environment["NUM_PS"], absl::StrCat(count));
      }
      if (other["name"] == "worker") {
        EXPECT_EQ(environment["NUM_WORKERS"], absl::StrCat(count));
      }
    }
  }
}

}  // namespace
}  // namespace parasol
