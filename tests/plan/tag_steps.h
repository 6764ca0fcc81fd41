#pragma once
// What one step does to tags: begin() and finish() with other steps in between.
#include <random>
#include <vector>

#include "tests/plan/tag_memory.h"

namespace zeroplan::test {

class TagStep {
 public:
  TagStep(const Plan& plan, std::vector<TagMemory>& ranks, const Step& step) : plan_(plan), ranks_(ranks), step_(step) {}

  // `rank` alone, or all of them for a collective (rank < 0). `early`: inputs are read here, else in finish().
  void begin(int rank, bool early);
  // What an export_unit reads is added to `exported`, in any order.
  void finish(int rank, Tag& exported);

 private:
  using Inputs = std::vector<std::vector<Tag>>;
  void read(int rank);
  void spoil_outputs(int rank, bool early);
  void kernel(int rank);
  void fill_padding(int rank);
  void load_unit(int rank);
  void all_gather();
  void reduce_scatter();
  void all_reduce();

  const Plan& plan_;
  std::vector<TagMemory>& ranks_;
  const Step& step_;
  std::vector<Inputs> inputs_;  // by rank
};

bool is_collective(const Step& step);

}  // namespace zeroplan::test
