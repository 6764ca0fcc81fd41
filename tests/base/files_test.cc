// Files written whole or not at all, mapped files, option patterns.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "base/patterns.h"
#include "base/temporary_folder.h"

namespace zeroplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder.file(name); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) names.push_back(entry.path().filename());
    return names;
  }
  static std::string text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryFolder folder;
};

TEST_F(Files, AnOutputFileIsThereOnceItIsCommitted) {
  write_file(path("a"), "old");
  {
    OutputFile file(path("a"));
    file.create();
    file.write("new", 3);
    file.pad_to(6);
    file.write("end", 3);
    file.write_at(3, "mid", 3);
    EXPECT_EQ(file.position(), 9);
    file.pad_to(11);
    EXPECT_EQ(text(path("a")), "old");
    file.commit();
  }
  EXPECT_EQ(text(path("a")), std::string("newmidend\0\0", 11));
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(Files, AnOutputFileThatIsNotCommittedLeavesNothing) {
  {
    OutputFile file(path("a"));
    file.create();
    file.write("half", 4);
  }
  EXPECT_THAT(names(), ElementsAre());
}

TEST_F(Files, NothingButFilesIsReplaced) {
  std::filesystem::create_directories(path("folder"));
  EXPECT_THROW(write_file(path("folder"), "x"), Error);
  EXPECT_THROW(write_file("/dev/null", "x"), Error);
  EXPECT_THROW(write_file(path("missing/a"), "x"), Error);
  EXPECT_THAT(names(), ElementsAre("folder"));
}

TEST_F(Files, AMappedFileShowsTheBytes) {
  write_file(path("a"), "bytes");
  write_file(path("empty"), "");
  const MappedFile file(path("a"));
  EXPECT_EQ(std::string(file.data(), static_cast<size_t>(file.size())), "bytes");
  EXPECT_EQ(MappedFile(path("empty")).size(), 0);
  EXPECT_THROW(MappedFile{folder.path()}, Error);
  EXPECT_THROW(MappedFile{path("missing")}, Error);
}

// A pipe without a writer would block the open for ever.
TEST_F(Files, ANamedPipeIsNotMapped) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THROW(MappedFile(path("pipe")), Error);
  EXPECT_THROW(MappedFile(path("")), Error);  // a folder
}

TEST(OptionPatterns, FindAnywhereAndKnowWhatWasUnused) {
  Patterns patterns("--freeze", {"^h\\.1", "norm", "nowhere"});
  EXPECT_EQ(patterns.find("h.1.norm")->pattern, 0);
  EXPECT_EQ(patterns.find("last_norm")->pattern, 1);
  EXPECT_FALSE(patterns.matches("weight"));
  EXPECT_EQ(patterns.find("the_norm.w")->text, "norm");
  EXPECT_EQ(patterns.find("the_norm.w")->pattern, 1);
  EXPECT_THAT(patterns.unused(), ElementsAre(HasSubstr("--freeze 'nowhere'")));
  EXPECT_THROW(Patterns("--freeze", {"("}), Error);
}

}  // namespace
}  // namespace zeroplan
