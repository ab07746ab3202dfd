#ifndef PARASOL_ML_OPTIMIZER_RULE_UPDATE_RULE_H_
#define PARASOL_ML_OPTIMIZER_RULE_UPDATE_RULE_H_

#include <cstddef>
#include <variant>

#include "ml/optimizer/rule/adadelta.h"
#include "ml/optimizer/rule/adagrad.h"
#include "ml/optimizer/rule/adam.h"
#include "ml/optimizer/rule/adamax.h"
#include "ml/optimizer/rule/average.h"
#include "ml/optimizer/rule/decayed.h"
#include "ml/optimizer/rule/ftrl.h"
#include "ml/optimizer/rule/lamb.h"
#include "ml/optimizer/rule/lion.h"
#include "ml/optimizer/rule/nadam.h"
#include "ml/optimizer/rule/rmsprop.h"
#include "ml/optimizer/rule/rowwise_adagrad.h"
#include "ml/optimizer/rule/sgd.h"

namespace parasol {

// The rule of one update, with its factors: whichever optimizer it is of.
using UpdateRule = std::variant<
    SgdRule, MomentumRule, NesterovRule, GatheringRule, DelayedNesterovRule,
    AdagradRule, AdamRule, AmsgradRule, AdadeltaRule, AdamaxRule, NadamRule,
    RmsPropRule, RmsPropCenteredRule, RmsPropMomentumRule,
    RmsPropCenteredMomentumRule, FtrlRule<FtrlSquareRoot>,
    FtrlRule<FtrlAnyPower>, FtrlStandingStill, DecayedRule<AdamRule>,
    DecayedRule<AmsgradRule>, DecayedRule<LionRule>, LambRule, AverageRule,
    RowwiseAdagradRule>;

// The largest number of slots that a variable has: a rule's, and the average.
constexpr size_t kMaxSlots = 4;

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_UPDATE_RULE_H_
