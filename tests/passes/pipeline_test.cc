#include <set>
#include <string>

#include <gtest/gtest.h>

#include "passes/pass.h"

namespace zeroplan {
namespace {

// --stop-after and --print-after find a pass by its name.
TEST(Pipeline, EachLineHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const Pass& pass : pipeline()) EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
}

}  // namespace
}  // namespace zeroplan
