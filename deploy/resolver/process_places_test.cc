#include "deploy/resolver/process_places.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "deploy/resolver/hosts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

auto IsRefusedWith(const std::string& words) {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  AllOf(HasSubstr(words), Not(HasSubstr("\n"))));
}

// A step of `srun --ntasks=5` on three nodes of a job that has five.
Variables Step() {
  return {{"SLURM_JOB_NODELIST", "n[01-05]"},
          {"SLURM_STEP_NODELIST", "n[01-03]"},
          {"SLURM_TASKS_PER_NODE", "4(x5)"},
          {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
          {"SLURM_NTASKS", "20"},
          {"SLURM_STEP_NUM_TASKS", "5"},
          {"SLURM_PROCID", "3"},
          {"SLURM_NODEID", "1"},
          {"SLURM_LOCALID", "1"}};
}

TEST(ProcessPlacesTest, TheStepsVariablesOfSlurmCountMoreThanTheJobs) {
  ASSERT_OK_AND_ASSIGN(const ProcessPlaces places, PlacesFromSlurm(Step()));
  EXPECT_THAT(places.hosts,
              ElementsAre(Host{"n01", 2}, Host{"n02", 2}, Host{"n03", 1}));
  EXPECT_EQ(places.rank, 3);
  EXPECT_EQ(places.size(), 5);
  EXPECT_EQ(places.size_source, "SLURM_STEP_NUM_TASKS");
}

TEST(ProcessPlacesTest, TheJobsVariablesOfSlurmAreEnough) {
  ASSERT_OK_AND_ASSIGN(const ProcessPlaces places,
                       PlacesFromSlurm({{"SLURM_JOB_NODELIST", "n[1-2]"},
                                        {"SLURM_TASKS_PER_NODE", "1(x2)"},
                                        {"SLURM_NTASKS", "2"},
                                        {"SLURM_PROCID", "0"}}));
  EXPECT_THAT(places.hosts, ElementsAre(Host{"n1", 1}, Host{"n2", 1}));
}

TEST(ProcessPlacesTest, WhatIsWrongWithSlurmsVariablesIsNamed) {
  struct Case {
    std::string name;
    std::string value;
    std::string words;
  };
  const Case cases[] = {
      {"SLURM_PROCID", "", "SLURM_PROCID: is not set; srun sets it"},
      {"SLURM_PROCID", "x", "SLURM_PROCID=\"x\": is not a number"},
      {"SLURM_PROCID", "-1", "SLURM_PROCID=\"-1\": is not a number"},
      {"SLURM_PROCID", "5", "SLURM_PROCID=\"5\": there are 5 processes"},
      {"SLURM_PROCID", "99999999999", "is not a number"},
      {"SLURM_STEP_NODELIST", "n[1-3", "SLURM_STEP_NODELIST=\"n[1-3\": "},
      {"SLURM_STEP_NODELIST", "n[1-1000000000]", "SLURM_STEP_NODELIST="},
      {"SLURM_STEP_NODELIST", "n[1-2]",
       "SLURM_STEP_TASKS_PER_NODE=\"2(x2),1\": is for 3 nodes, but "
       "SLURM_STEP_NODELIST=\"n[1-2]\" has 2"},
      {"SLURM_STEP_TASKS_PER_NODE", "2(x2)", "is for 2 nodes"},
      {"SLURM_STEP_TASKS_PER_NODE", "2(x2", "SLURM_STEP_TASKS_PER_NODE="},
      {"SLURM_STEP_NUM_TASKS", "6",
       "SLURM_STEP_NUM_TASKS=\"6\": the tasks per node are 5"},
      {"SLURM_NODEID", "0", "SLURM_NODEID=\"0\": would be 1"},
      {"SLURM_LOCALID", "0", "start them with --distribution=block"},
      {"SLURM_LOCALID", "?", "SLURM_LOCALID=\"?\": is not a number"},
      {"SLURM_DISTRIBUTION", "cyclic", "SLURM_DISTRIBUTION=\"cyclic\""}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name + "=" + c.value);
    Variables variables = Step();
    variables[c.name] = c.value;
    EXPECT_THAT(PlacesFromSlurm(variables), IsRefusedWith(c.words));
  }
  EXPECT_THAT(PlacesFromSlurm({}),
              IsRefusedWith("SLURM_STEP_NODELIST: is not set"));
}

TEST(ProcessPlacesTest, ADistributionDoesNotMatterWithOneProcessPerNode) {
  Variables variables = {{"SLURM_JOB_NODELIST", "n[1-2]"},
                         {"SLURM_TASKS_PER_NODE", "1(x2)"},
                         {"SLURM_PROCID", "1"},
                         {"SLURM_DISTRIBUTION", "cyclic"}};
  EXPECT_OK(PlacesFromSlurm(variables));
  variables["SLURM_TASKS_PER_NODE"] = "2(x2)";
  variables["SLURM_DISTRIBUTION"] = "block:cyclic";
  EXPECT_OK(PlacesFromSlurm(variables));
}

Variables Mpirun() {
  return {{"OMPI_COMM_WORLD_SIZE", "3"},
          {"OMPI_COMM_WORLD_RANK", "2"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
}

TEST(ProcessPlacesTest, ProcessesOfOpenMpiFillTheHosts) {
  ASSERT_OK_AND_ASSIGN(
      const ProcessPlaces places,
      PlacesFromOpenMpi(Mpirun(), {{"a", 2}, {"b", 2}, {"c", 2}}));
  EXPECT_THAT(places.hosts, ElementsAre(Host{"a", 2}, Host{"b", 1}));
  EXPECT_EQ(places.rank, 2);
}

TEST(ProcessPlacesTest, WhatIsWrongWithOpenMpisVariablesIsNamed) {
  struct Case {
    std::string name;
    std::string value;
    std::string words;
  };
  const Case cases[] = {
      {"OMPI_COMM_WORLD_SIZE", "", "OMPI_COMM_WORLD_SIZE: is not set; mpirun"},
      {"OMPI_COMM_WORLD_SIZE", "7", "slots for 6 processes; give mpirun's own"},
      {"OMPI_COMM_WORLD_SIZE", "0", "OMPI_COMM_WORLD_SIZE=\"0\""},
      {"OMPI_COMM_WORLD_SIZE", "1e9", "is not a number"},
      {"OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_RANK=\"3\": there are 3"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "1",
       "OMPI_COMM_WORLD_LOCAL_RANK=\"1\": would be 0 for process 2"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "3", "start it with --map-by slot"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name + "=" + c.value);
    Variables variables = Mpirun();
    variables[c.name] = c.value;
    EXPECT_THAT(PlacesFromOpenMpi(variables, {{"a", 2}, {"b", 2}, {"c", 2}}),
                IsRefusedWith(c.words));
  }
}

}  // namespace
}  // namespace parasol
