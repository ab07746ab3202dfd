#include "ml/optimizer/assigned/plain_subtraction.h"

#include "ml/optimizer/optimizer.h"

namespace parasol {

job::Optimizer PlainSubtraction() {
  job::Optimizer optimizer;
  optimizer.mutable_sgd()->set_learning_rate(1);
  FillDefaults(optimizer);
  return optimizer;
}

}  // namespace parasol
