#ifndef PARASOL_TESTS_SIMULATION_RULES_H_
#define PARASOL_TESTS_SIMULATION_RULES_H_

#include <string>
#include <vector>

namespace parasol::simulation {

// The behaviour of the code around the pure cores, as the simulated processes
// have it: streams, sessions and disks are tied to threads and files and have
// models here. Each rule is true where the code has it. A rule that is turned
// off is a mutant, which the simulation has to find.
struct Rules {
  // A ps refuses an order of the chief that is meant for another process.
  bool ps_checks_incarnation = true;
  // A ps refuses a load that is older than one it has had.
  bool ps_checks_load_number = true;
  // A ps refuses pushes and pulls of another layout.
  bool ps_checks_layout = true;
  // A worker starts again when the layout is another one.
  bool worker_follows_layout = true;
  // A ps that keeps its variables when the job's hyperparameters change takes
  // the new ones, and a worker of another job starts again.
  bool one_job = true;
  // A chief that finds another owner of the checkpoint directory writes no
  // more.
  bool directory_has_owner = true;
  // A checkpoint that can't be read at the moment is tried again, not passed
  // over.
  bool read_errors_pass = true;
  // A chief counts no evaluation of a checkpoint that its run has gone back
  // behind.
  bool abandoned_do_not_count = true;
  // A worker that waits for the last checkpoint tells a restarted chief what it
  // has done.
  bool workers_claim_at_the_end = true;
  // A ps that was told to end takes no more pushes.
  bool leaving_ps_is_sealed = true;
  // A synchronous worker pushes the gradients of its step again to a ps that
  // was replaced.
  bool worker_pushes_again = true;
  // A ps that acts for a lost one leaves only if its shard takes nothing behind
  // the checkpoint.
  bool acting_leaves_what_stays = true;
};

// Returns the names of all rules.
std::vector<std::string> RuleNames();
// Returns the rule of this name; nullptr if there is none.
bool* FindRule(Rules& rules, const std::string& name);

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_RULES_H_
