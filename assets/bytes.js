// The bytes of files of the page's own folder, one behind the other.
export const bytes = async (...files) => {
  const answers = await Promise.all(files.map((file) => fetch(file)));
  const parts = await Promise.all(answers.map((answer) => answer.blob()));
  return new Uint8Array(await new Blob(parts).arrayBuffer());
};
