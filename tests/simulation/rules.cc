#include "tests/simulation/rules.h"

#include <utility>

namespace parasol::simulation {
namespace {

struct NamedRule {
  const char* name;
  bool Rules::*rule;
};

constexpr NamedRule kRules[] = {
    {"ps_checks_incarnation", &Rules::ps_checks_incarnation},
    {"ps_checks_load_number", &Rules::ps_checks_load_number},
    {"ps_checks_layout", &Rules::ps_checks_layout},
    {"worker_follows_layout", &Rules::worker_follows_layout},
    {"one_job", &Rules::one_job},
    {"directory_has_owner", &Rules::directory_has_owner},
    {"read_errors_pass", &Rules::read_errors_pass},
    {"abandoned_do_not_count", &Rules::abandoned_do_not_count},
    {"workers_claim_at_the_end", &Rules::workers_claim_at_the_end},
    {"leaving_ps_is_sealed", &Rules::leaving_ps_is_sealed},
    {"worker_pushes_again", &Rules::worker_pushes_again},
    {"acting_leaves_what_stays", &Rules::acting_leaves_what_stays},
};

}  // namespace

std::vector<std::string> RuleNames() {
  std::vector<std::string> names;
  for (const NamedRule& rule : kRules) names.push_back(rule.name);
  return names;
}

bool* FindRule(Rules& rules, const std::string& name) {
  for (const NamedRule& rule : kRules) {
    if (rule.name == name) return &(rules.*rule.rule);
  }
  return nullptr;
}

}  // namespace parasol::simulation
