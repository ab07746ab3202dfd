#include "tests/benchmark/contender.h"

namespace parasol {

void Session::StartStep(absl::Span<const VariableExchange> exchanges) {
  for (const VariableExchange& exchange :
       exchanges.first(exchanges.size() - 1)) {
    Start(exchange);
    Finish();
  }
  Start(exchanges.back());
}

}  // namespace parasol
