#include "storage/tensor_files/pickle.h"

#include <algorithm>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

using Kind = PickleValue::Kind;

// An OrderedDict is made by a call without arguments, and filled afterwards.
constexpr absl::string_view kOrderedDict = "collections.OrderedDict";

// More than state_dicts have; without limits a short pickle could take all
// memory.
constexpr size_t kMaxValues = 4 << 20;
constexpr size_t kMaxGlobalBytes = 1024;

absl::Status NoPickle(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("is no pickle of tensors: ", what));
}

// Bytes that are taken from the front.
class PickleBytes {
 public:
  explicit PickleBytes(absl::string_view bytes) : rest_(bytes) {}

  absl::StatusOr<absl::string_view> Take(uint64_t count) {
    if (count > rest_.size()) return NoPickle("it is cut off");
    const absl::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  // A number of `bytes` bytes, 8 at most, the lowest first.
  absl::StatusOr<uint64_t> TakeNumber(size_t bytes) {
    ASSIGN_OR_RETURN(const absl::string_view taken, Take(bytes));
    uint64_t number = 0;
    for (size_t i = bytes; i-- > 0;) {
      number = number << 8 | static_cast<uint8_t>(taken[i]);
    }
    return number;
  }

  // The bytes behind a number of `bytes` bytes that counts them.
  absl::StatusOr<absl::string_view> TakeCounted(size_t bytes) {
    ASSIGN_OR_RETURN(const uint64_t count, TakeNumber(bytes));
    return Take(count);
  }

  absl::StatusOr<absl::string_view> TakeLine() {
    const size_t end = rest_.find('\n');
    if (end == absl::string_view::npos) return NoPickle("it is cut off");
    const absl::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }

 private:
  absl::string_view rest_;
};

// The number that two's complement of `bytes` bytes means.
int64_t Signed(uint64_t number, size_t bytes) {
  if (bytes == 0) return 0;
  const int unused = static_cast<int>(64 - 8 * bytes);
  return static_cast<int64_t>(number << unused) >> unused;
}

// Carries out the instructions of a pickle.
class PickleMachine {
 public:
  explicit PickleMachine(absl::string_view bytes) : input_(bytes) {}

  // Returns the value that is left at the end.
  absl::StatusOr<const PickleValue*> Run() {
    while (true) {
      ASSIGN_OR_RETURN(const absl::string_view code, input_.Take(1));
      if (code[0] == '.') return Pop();
      RETURN_IF_ERROR(Step(code[0]));
      if (values_.size() + stack_.size() + marks_.size() + memo_.size() >
          kMaxValues) {
        return NoPickle(
            absl::StrCat("it has more than ", kMaxValues, " values"));
      }
    }
  }

  std::deque<PickleValue> TakeValues() { return std::move(values_); }

 private:
  absl::Status Step(char code) {
    ASSIGN_OR_RETURN(bool is_done, PushScalar(code));
    if (is_done) return absl::OkStatus();
    ASSIGN_OR_RETURN(is_done, PushText(code));
    if (is_done) return absl::OkStatus();
    ASSIGN_OR_RETURN(is_done, UseMemo(code));
    if (is_done) return absl::OkStatus();
    ASSIGN_OR_RETURN(is_done, Collect(code));
    if (is_done) return absl::OkStatus();
    return Make(code);
  }

  // Numbers, and what has no operands.
  absl::StatusOr<bool> PushScalar(char code) {
    switch (code) {
      case '\x80':  // PROTO
        RETURN_IF_ERROR(input_.Take(1).status());
        return true;
      case '\x95':  // FRAME
        RETURN_IF_ERROR(input_.Take(8).status());
        return true;
      case 'N':
        Push({});
        return true;
      case 'G':  // a double
        RETURN_IF_ERROR(input_.Take(8).status());
        Push({});
        return true;
      case '\x88':
        return PushNumber(1);
      case '\x89':
        return PushNumber(0);
      case 'K':
        return PushNumber(1, /*is_signed=*/false);
      case 'M':
        return PushNumber(2, /*is_signed=*/false);
      case 'J':
        return PushNumber(4, /*is_signed=*/true);
      case '\x8a': {  // LONG1
        ASSIGN_OR_RETURN(const uint64_t bytes, input_.TakeNumber(1));
        if (bytes > 8) return NoPickle("a number has more than 64 bits");
        return PushNumber(bytes, /*is_signed=*/true);
      }
      default:
        return false;
    }
  }

  absl::StatusOr<bool> PushText(char code) {
    switch (code) {
      case 'X':
      case 'T':
        return PushCounted(4, Kind::kText);
      case '\x8c':
      case 'U':
        return PushCounted(1, Kind::kText);
      case '\x8d':
        return PushCounted(8, Kind::kText);
      case 'B':
        return PushCounted(4, Kind::kNone);
      case 'C':
        return PushCounted(1, Kind::kNone);
      case 'c': {  // GLOBAL
        ASSIGN_OR_RETURN(const absl::string_view module, input_.TakeLine());
        ASSIGN_OR_RETURN(const absl::string_view name, input_.TakeLine());
        RETURN_IF_ERROR(PushGlobal(module, name));
        return true;
      }
      default:
        return false;
    }
  }

  absl::StatusOr<bool> UseMemo(char code) {
    switch (code) {
      case 'q':
        return Memoize(1);
      case 'r':
        return Memoize(4);
      case '\x94': {
        ASSIGN_OR_RETURN(PickleValue* const value, Top());
        memo_[memo_.size()] = value;
        return true;
      }
      case 'h':
        return PushMemo(1);
      case 'j':
        return PushMemo(4);
      default:
        return false;
    }
  }

  // Collections and what is put into them.
  absl::StatusOr<bool> Collect(char code) {
    switch (code) {
      case '}':
        Push({.kind = Kind::kDictionary});
        return true;
      case ']':
      case ')':
      case '\x8f':
        Push({.kind = Kind::kSequence});
        return true;
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case 't': {
        ASSIGN_OR_RETURN(std::vector<const PickleValue*> items, PopToMark());
        Push({.kind = Kind::kSequence, .items = std::move(items)});
        return true;
      }
      case '\x85':
        return PushTuple(1);
      case '\x86':
        return PushTuple(2);
      case '\x87':
        return PushTuple(3);
      case 's':
        return Add(2);
      case 'a':
        return Add(1);
      case 'u':
      case 'e':
      case '\x90': {
        ASSIGN_OR_RETURN(const std::vector<const PickleValue*> items,
                         PopToMark());
        return AddAll(items);
      }
      default:
        return false;
    }
  }

  // Objects.
  absl::Status Make(char code) {
    switch (code) {
      case 'R':
      case '\x81':  // NEWOBJ
        return Call();
      case 'Q': {  // BINPERSID
        ASSIGN_OR_RETURN(const PickleValue* const id, Pop());
        Push({.kind = Kind::kPersistent, .items = {id}});
        return absl::OkStatus();
      }
      case 'b':  // BUILD: an object's attributes
      case '0':  // POP
        return Pop().status();
      case '\x93': {  // STACK_GLOBAL
        ASSIGN_OR_RETURN(const PickleValue* const name, Pop());
        ASSIGN_OR_RETURN(const PickleValue* const module, Pop());
        return PushGlobal(module->text, name->text);
      }
      default:
        return NoPickle(absl::StrCat(
            "instruction ", static_cast<int>(static_cast<uint8_t>(code)),
            " is not one that state_dicts have"));
    }
  }

  absl::Status Call() {
    ASSIGN_OR_RETURN(const PickleValue* const arguments, Pop());
    ASSIGN_OR_RETURN(const PickleValue* const called, Pop());
    if (called->text == kOrderedDict && arguments->items.empty()) {
      Push({.kind = Kind::kDictionary});
    } else {
      Push({.kind = Kind::kCall, .items = {called, arguments}});
    }
    return absl::OkStatus();
  }

  absl::Status PushGlobal(absl::string_view module, absl::string_view name) {
    if (module.size() + name.size() > kMaxGlobalBytes) {
      return NoPickle(
          absl::StrCat("a name of a function or class has more than ",
                       kMaxGlobalBytes, " bytes"));
    }
    Push({.kind = Kind::kGlobal, .text = absl::StrCat(module, ".", name)});
    return absl::OkStatus();
  }

  bool PushNumber(int64_t number) {
    Push({.kind = Kind::kNumber, .number = number});
    return true;
  }

  absl::StatusOr<bool> PushNumber(size_t bytes, bool is_signed) {
    ASSIGN_OR_RETURN(const uint64_t number, input_.TakeNumber(bytes));
    return PushNumber(is_signed ? Signed(number, bytes)
                                : static_cast<int64_t>(number));
  }

  absl::StatusOr<bool> PushCounted(size_t bytes, Kind kind) {
    ASSIGN_OR_RETURN(const absl::string_view text, input_.TakeCounted(bytes));
    Push({.kind = kind, .text = std::string(text)});
    return true;
  }

  absl::StatusOr<bool> PushTuple(size_t count) {
    std::vector<const PickleValue*> items(count);
    for (size_t i = count; i-- > 0;) {
      ASSIGN_OR_RETURN(items[i], Pop());
    }
    Push({.kind = Kind::kSequence, .items = std::move(items)});
    return true;
  }

  absl::StatusOr<bool> Memoize(size_t bytes) {
    ASSIGN_OR_RETURN(const uint64_t place, input_.TakeNumber(bytes));
    ASSIGN_OR_RETURN(memo_[place], Top());
    return true;
  }

  absl::StatusOr<bool> PushMemo(size_t bytes) {
    ASSIGN_OR_RETURN(const uint64_t place, input_.TakeNumber(bytes));
    const auto found = memo_.find(place);
    if (found == memo_.end()) return NoPickle("it refers to nothing");
    stack_.push_back(found->second);
    return true;
  }

  absl::StatusOr<bool> Add(size_t count) {
    std::vector<const PickleValue*> items(count);
    for (size_t i = count; i-- > 0;) {
      ASSIGN_OR_RETURN(items[i], Pop());
    }
    return AddAll(items);
  }

  absl::StatusOr<bool> AddAll(const std::vector<const PickleValue*>& items) {
    ASSIGN_OR_RETURN(PickleValue* const to, Top());
    if (to->kind == Kind::kDictionary && items.size() % 2 != 0) {
      return NoPickle("a key has no value");
    }
    // What is called is of no interest, nor what is put into it.
    if (to->kind != Kind::kCall) {
      to->items.insert(to->items.end(), items.begin(), items.end());
    }
    return true;
  }

  void Push(PickleValue value) {
    values_.push_back(std::move(value));
    stack_.push_back(&values_.back());
  }

  // The values that were pushed behind the last mark are all that can be
  // popped.
  bool IsEmpty() const {
    return stack_.size() == (marks_.empty() ? 0 : marks_.back());
  }

  absl::StatusOr<PickleValue*> Top() {
    if (IsEmpty()) return NoPickle("a value is missing");
    return stack_.back();
  }

  absl::StatusOr<const PickleValue*> Pop() {
    ASSIGN_OR_RETURN(const PickleValue* const value, Top());
    stack_.pop_back();
    return value;
  }

  absl::StatusOr<std::vector<const PickleValue*>> PopToMark() {
    if (marks_.empty()) return NoPickle("a mark is missing");
    const auto first = stack_.begin() + static_cast<int64_t>(marks_.back());
    std::vector<const PickleValue*> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }

  PickleBytes input_;
  std::deque<PickleValue> values_;
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;
  std::map<uint64_t, PickleValue*> memo_;
};

}  // namespace

absl::StatusOr<Pickle> Pickle::Parse(absl::string_view bytes) {
  PickleMachine machine(bytes);
  ASSIGN_OR_RETURN(const PickleValue* const top, machine.Run());
  return Pickle(machine.TakeValues(), top);
}

}  // namespace parasol
