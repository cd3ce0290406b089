# SPDX-License-Identifier: Apache-2.0
# cmake -DINPUT=FILE -DOUTPUT=FILE.cc -DSYMBOL=NAME -P embed.cmake
file(READ "${INPUT}" hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
string(REGEX REPLACE "('[^']*',)('[^']*',)('[^']*',)('[^']*',)('[^']*',)('[^']*',)('[^']*',)('[^']*',)"
       "\\1\\2\\3\\4\\5\\6\\7\\8\n" bytes "${bytes}")
file(WRITE "${OUTPUT}" "extern \"C\" {
extern const char ${SYMBOL}[];
extern const unsigned long ${SYMBOL}_size;
const char ${SYMBOL}[] = {
${bytes}'\\0'};
const unsigned long ${SYMBOL}_size = ${size};
}
")
