// Rule border: what lives from program to program.
#include <algorithm>
#include <map>
#include <set>

#include "runtime/plan/verify_context.h"

namespace zeroplan {
namespace {

using Values = std::map<int32_t, int32_t>;  // tensor -> value
using Span = std::array<int64_t, 2>;        // bytes [begin, end)

// The programs that may follow each other in load → (micro_step^n update | eval_step^n eval_end)* → save; a forward plan
// has eval_step alone between load and save.
constexpr std::pair<Program, Program> kSuccessions[] = {
    {Program::load, Program::micro_step},       {Program::load, Program::eval_step},      {Program::load, Program::save},
    {Program::micro_step, Program::micro_step}, {Program::micro_step, Program::update},   {Program::update, Program::micro_step},
    {Program::update, Program::eval_step},      {Program::update, Program::save},         {Program::eval_step, Program::eval_step},
    {Program::eval_step, Program::eval_end},    {Program::eval_end, Program::micro_step}, {Program::eval_end, Program::eval_step},
    {Program::eval_end, Program::save},         {Program::eval_step, Program::save},
};

class Borders {
 public:
  explicit Borders(VerifyContext& context) : context_(context), plan_(context.plan) {}

  void run() {
    for (const PlanProgram& p : plan_.programs) {
      entries_[p.program] = collect(p, p.entry, "entry", p.program == Program::update);
      exits_[p.program] = collect(p, p.exit, "exit", p.program == Program::micro_step);
    }
    check_programs();
    if (!context_.clean()) return;
    check_coverage();
    check_entry_names();
    for (const auto& [from, to] : kSuccessions) check_succession(from, to);
  }

 private:
  bool is_state(int32_t tensor) const { return plan_.tensors[tensor].arena == Arena::state && !plan_.tensors[tensor].per_rank; }

  // `carries`: this is where micro_step hands carried gradients to update.
  Values collect(const PlanProgram& p, const std::vector<Operand>& list, const char* what, bool carries) {
    Values values;
    for (const Operand& o : list) {
      if (o.tensor == kNone || !(is_state(o.tensor) || (carries && context_.carried[o.tensor])))
        context_.fail("border", p, -1,
                      fmt::format("its {} names {}, which does not live at this border", what,
                                  o.tensor == kNone ? "nothing" : context_.tensor_name(o.tensor)));
      else if (!values.emplace(o.tensor, o.value).second)
        context_.fail("border", p, -1, fmt::format("its {} names {} twice", what, context_.tensor_name(o.tensor)));
    }
    return values;
  }

  void check_programs() {
    const std::set<Program> needed = plan_.outputs.empty() ? std::set{Program::load, Program::micro_step, Program::update, Program::save}
                                                           : std::set{Program::load, Program::eval_step};
    for (const Program p : needed)
      if (!entries_.count(p)) context_.fail("border", fmt::format("program {} is missing", program_name(p)));
    if (!plan_.outputs.empty() && (entries_.count(Program::micro_step) || entries_.count(Program::update)))
      context_.fail("border", "a plan with outputs trains");
    if (plan_.outputs.empty() && entries_.count(Program::eval_step) != entries_.count(Program::eval_end))
      context_.fail("border", "eval_step and eval_end only exist together");
    for (size_t i = 1; i < plan_.programs.size(); ++i)
      if (plan_.programs[i].program <= plan_.programs[i - 1].program) context_.fail("border", "programs are not in order, or given twice");
    for (const PlanProgram& p : plan_.programs) {
      if (p.program != Program::load) check_same_state(p, entries_[p.program]);  // before load only constants are there
      check_same_state(p, exits_[p.program]);
      if (p.program == Program::micro_step) check_carried(p, exits_[p.program], "exit");
      if (p.program == Program::update) check_carried(p, entries_[p.program], "entry");
    }
  }

  void check_carried(const PlanProgram& p, const Values& side, const char* what) {
    for (const PlanUnit& u : plan_.units) {
      if (!u.trainable || !context_.carried[u.gradient_tensor]) continue;
      const auto named = side.find(u.gradient_tensor);
      if (named == side.end() || named->second == kNone)
        context_.fail("border", p, -1, fmt::format("its {} does not say what {} holds", what, context_.tensor_name(u.gradient_tensor)));
    }
  }

  void check_same_state(const PlanProgram& p, const Values& side) {
    const Values& all = exits_[Program::load];
    for (const auto& [tensor, value] : all)
      if (!side.count(tensor)) context_.fail("border", p, -1, fmt::format("its entry or exit leaves out {}", context_.tensor_name(tensor)));
    const auto state = std::count_if(side.begin(), side.end(), [&](const auto& entry) { return is_state(entry.first); });
    if (static_cast<size_t>(state) > all.size()) context_.fail("border", p, -1, "its entry or exit names state that load does not leave");
  }

  void check_apart(std::vector<Span>& spans, const char* what) {
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i)
      if (spans[i][0] < spans[i - 1][1]) context_.fail("border", fmt::format("two {} share byte {}", what, spans[i][0]));
  }

  // Entries do not overlap, and each state tensor lies within one.
  void check_coverage() {
    std::vector<Span> spans, carried;
    for (const auto& [tensor, value] : exits_[Program::load]) spans.push_back(context_.ranges[tensor]);
    check_apart(spans, "state tensors");
    for (const auto& [tensor, value] : entries_[Program::update])
      if (!is_state(tensor)) carried.push_back(context_.ranges[tensor]);
    check_apart(carried, "carried gradients");
    for (size_t t = 0; t < plan_.tensors.size(); ++t) {
      if (plan_.tensors[t].arena != Arena::state) continue;
      const auto [begin, end] = context_.ranges[t];
      auto it = std::upper_bound(spans.begin(), spans.end(), Span{begin, INT64_MAX});
      if (it == spans.begin() || (*std::prev(it))[1] < end)
        context_.fail("border",
                      fmt::format("{} is in no entry: nothing says what it holds", context_.tensor_name(static_cast<int32_t>(t))));
    }
  }

  void check_entry_names() {
    Values names;
    for (const PlanProgram& p : plan_.programs) {
      if (p.program == Program::load) continue;
      for (const auto& [tensor, value] : entries_[p.program]) {
        const auto [known, added] = names.emplace(tensor, value);
        if (added || value == kNone || known->second == value) continue;
        if (known->second == kNone)
          known->second = value;
        else
          context_.fail("border", p, -1,
                        fmt::format("{} is called {} at entry, {} elsewhere", context_.tensor_name(tensor), context_.value_name(value),
                                    context_.value_name(known->second)));
      }
    }
  }

  void check_succession(Program from, Program to) {
    if (!exits_.count(from) || !entries_.count(to)) return;
    for (const auto& [tensor, value] : entries_[to])
      if (value != kNone && exits_[from][tensor] == kNone)
        context_.fail("border", fmt::format("{} reads {} in {}, which {} leaves undefined", program_name(to), context_.value_name(value),
                                            context_.tensor_name(tensor), program_name(from)));
  }

  VerifyContext& context_;
  const Plan& plan_;
  std::map<Program, Values> entries_, exits_;
};

}  // namespace

void verify_borders(VerifyContext& context) { Borders(context).run(); }

}  // namespace zeroplan
