# cmake -DROOT=web -DOUT=assets.cc -P embed.cmake: writes the files of ROOT as a C++ file that defines
# DashboardAssets (src/admin/dashboard/asset.h). Needs only CMake.
cmake_minimum_required(VERSION 3.25)

set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")

file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/*.html ${ROOT}/*.css ${ROOT}/*.js ${ROOT}/*.svg)
list(SORT files)
set(arrays "")
set(entries "")
set(number 0)
foreach(file ${files})
  get_filename_component(extension ${file} LAST_EXT)
  string(SUBSTRING ${extension} 1 -1 extension)
  file(READ ${ROOT}/${file} bytes HEX)
  file(SHA256 ${ROOT}/${file} digest)
  string(SUBSTRING ${digest} 0 32 digest)
  string(LENGTH "${bytes}" size)
  math(EXPR size "${size} / 2")
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  set(path "/${file}")
  if(file STREQUAL "index.html")
    set(path "/")
  endif()
  string(APPEND arrays "constexpr char kFile${number}[] = {${bytes}};\n")
  string(APPEND entries
    "    {\"${path}\", \"${type_${extension}}\", \"\\\"${digest}\\\"\", {kFile${number}, ${size}}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "// Made by cmake/embed.cmake from the files of web/.
#include \"admin/dashboard/asset.h\"

namespace weir::admin {
namespace {

${arrays}
constexpr Asset kAssets[] = {
${entries}};

}  // namespace

std::span<const Asset> DashboardAssets() { return kAssets; }

}  // namespace weir::admin
")
