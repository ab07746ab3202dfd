#!/bin/bash
# All mutants apply to the sources as they are; and tests/mutate finds, changes
# and gives back what it says, in a small tree.
set -euo pipefail

# Bazel shows a test the tree through links: follow one to the real root.
root=$(dirname "$(readlink -f WORKSPACE)")
(cd "$root" && tests/mutate --check tests/simulation/mutants.txt \
  tests/simulation/group/mutants.txt third_party/cuda_on_host/mutants.txt \
  storage/mutants.txt ml/input/web/mutants.txt)

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/tests" "$tree/a"
cp "$root/tests/mutate" "$tree/tests"
cd "$tree"
cat >a/b.cc <<'END'
// "class A { no() {" of a comment }
#define OPEN {
namespace n {
int Twice(int x) { return 2 * x; }
class A final : public B<int> {
 public:
  A() : x_{1}, y_(2) { Twice(x_); }
  bool operator()(int x = {}) const { return Twice(x) == '"'; }

 private:
  int x_ = 1;
};
template <typename T, typename = If<(T::k > 1)>>
__global__ void __launch_bounds__(1'024) A::Run(std::function<void(int)> f) {
  const auto g = [](int x) { return Twice(x); };
  if (f) {
    f(Twice(
        3));  // "}"
  }
}
void A::Run() { Twice(3), Twice(4); }
}  // namespace n
END
cp a/b.cc original.cc

fail() {
  echo "$1" >&2
  exit 1
}

# The mutant's lines are the standard input; what it changes, the output.
changed() {
  { echo "[m]" && cat; } >m.txt
  tests/mutate --print m.txt m >changed.cc 2>changed.err || {
    cat changed.err
    return
  }
  diff original.cc changed.cc | grep '^[<>]' || true
}

expect() {  # WHAT EXPECTED, with the mutant as standard input
  local found
  found=$(changed)
  [ "$found" = "$2" ] || fail "$1: found
$found
but not
$2"
}

expect "white space doesn't count" "<     f(Twice(
<         3));  // \"}\"
>     f(4);  // \"}\"" <<'END'
a/b.cc: A::Run
- f(Twice(3))
+ f(4)
END
expect "a statement is deleted with its line" "<   int x_ = 1;" <<'END'
a/b.cc: A
- int x_ = 1;
END
expect "a constructor with initializers" \
  "<   A() : x_{1}, y_(2) { Twice(x_); }
>   A() : x_{2}, y_(2) { Twice(x_); }" <<'END'
a/b.cc: A::A
- 1
+ 2
END
expect "an operator" \
  "<   bool operator()(int x = {}) const { return Twice(x) == '\"'; }
>   bool operator()(int x = {}) const { return Twice(x) == 'a'; }" <<'END'
a/b.cc: A::operator()
- '"'
+ 'a'
END
expect "the second change sees the first" \
  "< int Twice(int x) { return 2 * x; }
> int Twice(int x) { return 4 * x; }" <<'END'
a/b.cc: Twice
- 2
+ 3
a/b.cc: Twice
- 3
+ 4
END
expect "an expression of both overloads" \
  "mutate: m: a/b.cc: A::Run: found 2 times: Twice(3)" <<'END'
a/b.cc: A::Run
- Twice(3)
END
expect "an expression that is elsewhere" \
  "mutate: m: a/b.cc: A::Run: found 0 times: Twice(x_)" <<'END'
a/b.cc: A::Run
- Twice(x_)
END
expect "a function that is only called" \
  "mutate: m: a/b.cc: f: f is not found" <<'END'
a/b.cc: f
- 3
END
expect "an expression of the file" \
  "mutate: m: a/b.cc: found 2 times: Twice(x)" <<'END'
a/b.cc:
- Twice(x)
END

# A key, and the exit status of a command that sees the change.
printf '[m]\nlate: none\na/b.cc: Twice\n- 2\n+ 3\n' >m.txt
[ "$(tests/mutate --value m.txt m late)" = none ] || fail "no value"
code=0
tests/mutate m.txt m bash -c "grep -q '3 [*] x' a/b.cc && exit 7" || code=$?
[ $code = 7 ] || fail "exit status $code, not 7"
cmp a/b.cc original.cc || fail "the source is not as it was"

# It is interrupted: the command says when, by a pipe, and waits for its end.
mkfifo began ended
tests/mutate m.txt m bash -c 'echo >began; read <ended' &
mutate=$!
read -r <began
! cmp -s a/b.cc original.cc || fail "the source is not changed"
kill -TERM $mutate
code=0
wait $mutate || code=$?
[ $code = 143 ] || fail "exit status $code, not 143"
cmp a/b.cc original.cc || fail "the source is not as it was after an interrupt"
